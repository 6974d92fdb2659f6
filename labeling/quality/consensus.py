"""Consensus revisions of traces. The only module that adds and reads them.

Exports and training use `current_revisions`: the newest revision of each settled or decided trace.
"""

import datetime as dt
import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import F, QuerySet

from accounts.models import User
from labeling.models import Consensus, Judgment, Project, Settlement
from labeling.models.consensus import ConsensusSource, SettlementState
from labeling.models.project import EVERY_STEP_PROTOCOLS
from labeling.quality.posteriors import PROBABILITY_DIGITS, Posterior
from labeling.quality.settlements import RESOLVED_STATES
from labeling.quality.submitted_reports import RevisionReport

NEGATIVE, NEUTRAL, POSITIVE = -1, 0, 1


class OptionRating(NamedTuple):
    """One rating, with the first error of the same submission."""

    step: int
    option: int
    rating: int
    first_error: int | None


class StepLabel(NamedTuple):
    step: int
    option: int
    rating: int
    confidence: float
    n_at_risk: int


class VoteShares(NamedTuple):
    """The shares of votes for the first error, in place of a posterior."""

    votes: Sequence[int | None]

    def probability_at(self, step: int) -> float:
        return self.votes.count(step) / max(len(self.votes), 1)

    def probability_after(self, step: int) -> float:
        return sum(vote is None or vote > step for vote in self.votes) / max(len(self.votes), 1)


def labels_from_first_error(
    ratings: Iterable[OptionRating],
    *,
    first_error: int | None,
    votes: Sequence[int | None],
    posterior: Posterior | None = None,
) -> list[StepLabel]:
    """Return labels with confidences: by `posterior` if given, otherwise shares of the uncensored `votes`."""
    shares = posterior or VoteShares(votes)
    by_option = _group_by_option(row for row in ratings if first_error is None or row.step <= first_error)
    labels = []
    for (step, option), rows in by_option.items():
        at_risk = [row.rating for row in rows if row.first_error is None or row.first_error >= step]
        if option:
            labels += _majority_label(step, option, at_risk)
        elif step == first_error:
            labels.append(StepLabel(step, 0, NEGATIVE, shares.probability_at(step), len(at_risk)))
        else:
            labels += _label_before_error(step, at_risk, shares)
    return sorted(labels)


def labels_from_every_step(ratings: Iterable[OptionRating]) -> list[StepLabel]:
    by_option = _group_by_option(ratings)
    labels = (_majority_label(step, option, [row.rating for row in rows]) for (step, option), rows in by_option.items())
    return sorted(itertools.chain.from_iterable(labels))


def _group_by_option(ratings: Iterable[OptionRating]) -> dict[tuple[int, int], list[OptionRating]]:
    by_option: dict[tuple[int, int], list[OptionRating]] = {}
    for row in ratings:
        by_option.setdefault((row.step, row.option), []).append(row)
    return by_option


def _label_before_error(step: int, at_risk: Sequence[int], shares: Posterior | VoteShares) -> list[StepLabel]:
    counts = Counter(at_risk)
    if not counts[POSITIVE] + counts[NEUTRAL]:
        return []
    rating = POSITIVE if counts[POSITIVE] >= counts[NEUTRAL] else NEUTRAL
    return [StepLabel(step, 0, rating, shares.probability_after(step), len(at_risk))]


def _majority_label(step: int, option: int, ratings: Sequence[int]) -> list[StepLabel]:
    ranked = Counter(ratings).most_common(2)
    if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return []
    return [StepLabel(step, option, ranked[0][0], ranked[0][1] / len(ratings), len(ratings))]


def uncensored_positions(submissions: Sequence[RevisionReport]) -> list[int | None]:
    return [report.position for report in submissions if not report.is_censored]


def derive_labels(
    project: Project,
    submissions: Sequence[RevisionReport],
    ratings: Mapping[int, Sequence[OptionRating]],
    first_error: int | None,
    posterior: Posterior | None = None,
) -> list[StepLabel]:
    """Return the step labels that follow from a consensus on the first error, from the ratings of each assignment."""
    rated = [rating for report in submissions for rating in ratings[report.assignment_id]]
    if project.protocol in EVERY_STEP_PROTOCOLS:
        return labels_from_every_step(rated)
    votes = uncensored_positions(submissions)
    return labels_from_first_error(rated, first_error=first_error, votes=votes, posterior=posterior)


def agree_with_decision(
    project: Project,
    submissions: Sequence[RevisionReport],
    ratings: Mapping[int, Sequence[OptionRating]],
    first_error: int | None,
) -> list[StepLabel]:
    """Return the labels of these submissions that agree with a decision, and the decided first error."""
    labels = [
        label._replace(confidence=1.0) if not label.option else label
        for label in derive_labels(project, submissions, ratings, first_error)
        if label.option or not _contradicts(label, first_error)
    ]
    if first_error is not None and not any(label[:2] == (first_error, 0) for label in labels):
        labels.append(StepLabel(first_error, 0, NEGATIVE, 1.0, 0))
    return sorted(labels)


def _contradicts(label: StepLabel, first_error: int | None) -> bool:
    is_negative = label.rating == NEGATIVE
    if first_error is None or label.step < first_error:
        return is_negative
    return label.step == first_error and not is_negative


def load_ratings(submissions: Sequence[RevisionReport]) -> dict[int, list[OptionRating]]:
    """Return the ratings of each assignment."""
    reports = {report.assignment_id: report for report in submissions}
    rows = Judgment.objects.filter(
        turn__assignment_id__in=reports,
        rating__isnull=False,
        turn__step__is_rateable=True,
    ).values_list("turn__assignment_id", "turn__revision", "turn__step__position", "option__position", "rating")
    ratings: dict[int, list[OptionRating]] = defaultdict(list)
    for assignment_id, revision, step, option, rating in rows:
        if rating is not None and reports[assignment_id].revision == revision:
            ratings[assignment_id].append(OptionRating(step, option, rating, reports[assignment_id].position))
    return ratings


class AssistedConsensus(NamedTuple):
    """The result with machines and raters who saw scores included: their votes, and the posterior of all."""

    votes: Sequence[int | None]
    posterior: Posterior | None


NO_ASSISTED_CONSENSUS = AssistedConsensus((), None)


def current_revisions(*, project_id: int) -> QuerySet[Consensus]:
    """Return the current revision of each resolved trace that is not withdrawn."""
    return Consensus.objects.filter(
        project_id=project_id,
        trace__withdrawn_at=None,
        trace__settlement__state__in=RESOLVED_STATES,
        revision=F("trace__settlement__consensus_revision"),
    )


def latest_resolved(
    *, project_id: int, state: SettlementState, only: Collection[int] | None = None
) -> QuerySet[Settlement, tuple[int, int]]:
    """Return (trace, number of votes) of traces in a resolved state, the newest first."""
    rows = Settlement.objects.filter(project_id=project_id, state=state)
    rows = rows if only is None else rows.filter(trace__in=only)
    return rows.order_by("-changed_at", "-trace_id").values_list("trace_id", "n_votes")


@dataclass(frozen=True, kw_only=True)
class RevisionDraft:
    """The content of a consensus revision. A decision by a person has no confidence, posterior or assisted result."""

    trace_id: int
    project_id: int
    first_error: int | None
    source: ConsensusSource
    n_votes: int
    labels: Sequence[StepLabel]
    confidence: float | None = None
    note: str = ""
    posterior: Posterior | None = None
    assisted: AssistedConsensus = NO_ASSISTED_CONSENSUS

    @property
    def probability(self) -> float | None:
        """The probability of the first error by the rater model."""
        if self.posterior is None:
            return None
        return round(self.posterior.probability_at(self.first_error), PROBABILITY_DIGITS)

    @property
    def content(self) -> dict[str, Any]:
        return {
            "first_error": self.first_error,
            "source": self.source,
            "confidence": self.confidence,
            "n_votes": self.n_votes,
            "labels": [list(label) for label in self.labels],
            "note": self.note,
            "assisted_votes": list(self.assisted.votes),
        }


def save_revisions(*, drafts: Sequence[RevisionDraft], now: dt.datetime, by: User | None) -> dict[int, int]:
    """Return for each trace the number of the newest revision with this content, or of a new one.

    Runs in a transaction that locks the traces. A later fit alone makes no new revision.
    """
    earlier: dict[int, list[Consensus]] = defaultdict(list)
    for row in Consensus.objects.filter(trace__in=[draft.trace_id for draft in drafts]).order_by("-revision"):
        earlier[row.trace_id].append(row)
    numbers, added = {}, []
    for draft in drafts:
        rows = earlier[draft.trace_id]
        same = None
        if draft.source == ConsensusSource.RATERS:
            same = next((row for row in rows if _is_same_revision(row, draft)), None)
        numbers[draft.trace_id] = same.revision if same else rows[0].revision + 1 if rows else 1
        if same is None:
            key = {"trace_id": draft.trace_id, "project_id": draft.project_id, "revision": numbers[draft.trace_id]}
            probabilities = _build_probability_fields(draft)
            added.append(Consensus(**key, **draft.content, **probabilities, made_at=now, made_by=by))
    Consensus.objects.bulk_create(added)
    return numbers


def _build_probability_fields(draft: RevisionDraft) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if (posterior := draft.posterior) is not None:
        fields |= {"posterior": posterior.as_list(), "probability": draft.probability, "fit_id": posterior.fit_id}
    if (assisted := draft.assisted.posterior) is not None:
        fields |= {"assisted_posterior": assisted.as_list(), "assisted_fit_id": assisted.fit_id}
    return fields


def _is_same_revision(row: Consensus, draft: RevisionDraft) -> bool:
    if (draft.posterior and row.fit_id is None) or (draft.assisted.posterior and row.assisted_fit_id is None):
        return False
    content = draft.content
    stored = {name: getattr(row, name) for name in content}
    if draft.posterior is None:
        return stored == content
    # With a posterior, confidences are probabilities, which differ between fits of the same submissions.
    return _without_confidence(stored) == _without_confidence(content)


def _without_confidence(content: dict[str, Any]) -> dict[str, Any]:
    return {**content, "labels": [label[:3] for label in content["labels"]]}
