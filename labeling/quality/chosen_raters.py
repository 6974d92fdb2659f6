"""The consensus that chosen raters would reach: without the labels of the others, each resolved trace gets its first
error again.

The votes that remain decide, by a majority without a tie, or by the rater model where it settles traces. Unlike
settling, this requests no more labels, so a single vote can be enough; `n_votes` tells how many there were. Where the
votes determine nothing, the trace has no consensus of these raters. A decision by a person stays.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet

from labeling.models import Consensus, FirstErrorReport, Project, Rater, RaterModelFit
from labeling.models.consensus import ConsensusSource
from labeling.quality import consensus, posteriors, rater_model, redundancy, settlements, submitted_reports
from labeling.quality.consensus import RevisionDraft
from labeling.quality.posteriors import Posterior
from stats import label_votes

CHUNK = 500  # traces


class RaterChoice(NamedTuple):
    """Raters by their names or pseudonyms in datasets; None is the unknown rater. `only` None includes all."""

    only: Sequence[str | None] | None = None
    without: Sequence[str] = ()

    @property
    def is_everybody(self) -> bool:
        return self.only is None and not self.without

    def match_left_out(self, prefix: str = "") -> Q:
        """Return a condition on `prefix` + "labeler" that matches the raters who are left out."""
        name = f"{prefix}labeler"
        is_left_out = Q(**{f"{name}__in": list(self.without)})
        if self.only is not None:
            is_included = Q(**{f"{name}__in": [each for each in self.only if each is not None]})
            if None in self.only:
                is_included |= Q(**{name: None})
            is_left_out |= ~is_included
        return is_left_out


class ChosenConsensus(NamedTuple):
    """The consensus of the chosen raters on one trace, next to the current one of all raters."""

    current: Consensus
    draft: RevisionDraft | None  # None if the labels that remain determine no first error

    @property
    def is_changed(self) -> bool:
        return self.draft is not None and self.draft.first_error != self.current.first_error


def select_affected(*, project: Project, choice: RaterChoice) -> QuerySet[Consensus]:
    """Return the current consensus of the resolved traces that have a vote of a rater who is left out."""
    votes = FirstErrorReport.objects.filter(trace=OuterRef("trace"), assignment__set_aside=None)
    current = consensus.current_revisions(project_id=project.pk)
    return current.filter(Exists(votes.filter(choice.match_left_out("rater__")))).order_by("trace")


def infer_consensus(*, project: Project, revisions: Sequence[Consensus], choice: RaterChoice) -> list[ChosenConsensus]:
    """Infer the consensus of the chosen raters on some traces. Changes nothing."""
    traces = [row.trace_id for row in revisions]
    left_out = set(Rater.objects.filter(choice.match_left_out(), project=project).values_list("pk", flat=True))
    loaded = submitted_reports.load_submitted_reports(traces)
    remaining = {
        trace: [report for report in reports if report.is_blind and report.rater_id not in left_out]
        for trace, reports in loaded.items()
    }
    fit = rater_model.load_current_fit(project.pk)
    reports = [report for each in remaining.values() for report in each]
    trace_posteriors = {}
    if fit is not None and reports:
        trace_posteriors = posteriors.compute_posteriors(fit, posteriors.load_trace_shapes(remaining), reports)
    ratings = consensus.load_ratings(reports)
    inferred = []
    for row in revisions:
        own, posterior = remaining[row.trace_id], trace_posteriors.get(row.trace_id)
        votes = [report.position for report in own if not report.is_censored]
        is_decided = row.source == ConsensusSource.PERSON
        place = (row.first_error,) if is_decided else _find_first_error(project, votes, fit, posterior)
        draft = None
        if place is not None:
            draft = RevisionDraft(
                trace_id=row.trace_id,
                project_id=project.pk,
                first_error=place[0],
                source=ConsensusSource(row.source),
                confidence=None if is_decided else votes.count(place[0]) / len(votes),
                n_votes=len(votes),
                labels=(
                    consensus.agree_with_decision(project, own, ratings, place[0])
                    if is_decided
                    else consensus.derive_labels(project, own, ratings, place[0], posterior)
                ),
                note=row.note,
                posterior=None if is_decided else posterior,
            )
        inferred.append(ChosenConsensus(row, draft))
    return inferred


def _find_first_error(
    project: Project, votes: Sequence[int | None], fit: RaterModelFit | None, posterior: Posterior | None
) -> tuple[int | None] | None:
    """Return the first error that the votes determine, or None if they determine none."""
    leading = label_votes.find_leading_place(votes)
    if leading is None:
        return None
    if fit is not None and posterior is not None:
        if project.uses_probability and fit.threshold is not None:
            is_accepted = posterior.probability_at(posterior.leading) >= fit.threshold
            return (posterior.leading,) if is_accepted else None
        if fit.settles_traces and len(votes) > 1:
            place = max(set(votes), key=lambda vote: (posterior.probability_at(vote), vote == leading.place))
            return (place,) if posterior.probability_at(place) >= redundancy.LIKELY else None
    return None if leading.is_tied else (leading.place,)


def iterate_chunks(*, project: Project, choice: RaterChoice) -> Iterator[list[Consensus]]:
    """Yield the affected traces, some at a time."""
    rows, last = select_affected(project=project, choice=choice), 0
    while chunk := list(rows.filter(trace__gt=last)[:CHUNK]):
        yield chunk
        last = chunk[-1].trace_id


def save_chosen_revisions(
    *, project: Project, revisions: Sequence[Consensus], choice: RaterChoice, now: dt.datetime
) -> list[tuple[int, int, int]]:
    """Store the consensus of the chosen raters as revisions that are not current, for a snapshot. Return (trace,
    revision, number of votes) for each trace that has one."""
    settlements.lock_traces(trace_ids=[row.trace_id for row in revisions])
    inferred = infer_consensus(project=project, revisions=revisions, choice=choice)
    drafts = [each.draft for each in inferred if each.draft and each.draft.source == ConsensusSource.RATERS]
    numbers = consensus.save_revisions(drafts=drafts, now=now, by=None)
    for each in inferred:
        if each.draft is not None and each.draft.source == ConsensusSource.PERSON:
            numbers[each.current.trace_id] = _save_decision(each.current, each.draft, now)
    n_votes = {each.draft.trace_id: each.draft.n_votes for each in inferred if each.draft}
    return [(trace, numbers[trace], n) for trace, n in n_votes.items()]


def _save_decision(current: Consensus, draft: RevisionDraft, now: dt.datetime) -> int:
    """Return the newest revision of this decision with these labels, or that of a new one."""
    same = Consensus.objects.filter(
        trace=draft.trace_id,
        source=draft.source,
        first_error=draft.first_error,
        labels=[list(label) for label in draft.labels],
        made_by=current.made_by,
        note=current.note,
    )
    if (revision := same.order_by("-revision").values_list("revision", flat=True).first()) is not None:
        return revision
    return consensus.save_revisions(drafts=[draft], now=now, by=current.made_by)[draft.trace_id]
