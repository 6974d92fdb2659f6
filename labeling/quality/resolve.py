"""Resolve submitted traces: settle them, request one more submission, or mark them as contested.

Runs soon after a submit, a few traces per transaction. It locks the traces, as submits do, so the submissions cannot
change while a trace is resolved. Decisions by a person are final. Only this module writes reports; besides
`adjudication`, only this module changes settlements.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from events import audit_log
from labeling import queue
from labeling.models import AddedSlot, FirstErrorReport, Judgment, Project, RaterModelFit, Settlement
from labeling.models.consensus import ConsensusSource, SettlementState
from labeling.models.project import Protocol
from labeling.models.rater_model import FitBasis
from labeling.quality import (
    consensus,
    posteriors,
    rater_model,
    redundancy,
    resolution_state,
    running_totals,
    step_labels,
    submitted_readings,
)
from labeling.quality.consensus import NO_ASSISTED_CONSENSUS, AssistedConsensus
from labeling.quality.posteriors import Posterior
from labeling.quality.redundancy import ResolutionCourse, SubmittedVote, WeighedVotes
from labeling.quality.step_labels import OptionRating, PlaceProbability, StepLabel
from labeling.quality.submitted_readings import SubmittedReport

CHUNK = 20
SENT_BACK = "sent_back"  # the reason after a request by a person; the last round is the number of the submission
_RETRY_AFTER, _MAX_RETRY_AFTER = dt.timedelta(seconds=3), dt.timedelta(hours=1)
_MAX_FAILURES = 20


@dataclass
class _TraceReview:
    """The data of one trace to resolve.

    `submissions` are those that vote. `n_initial` slots were opened at first, and one more in each of the `rounds`.
    """

    row: Settlement
    project: Project
    n_initial: int
    rounds: set[int]
    submissions: list[SubmittedReport]
    posterior: Posterior | None
    fit: RaterModelFit | None
    assisted: AssistedConsensus

    @property
    def overlap(self) -> int:
        """The project's overlap, but at most the initial slots: raising the overlap does not reopen finished traces."""
        return min(self.project.overlap, self.n_initial)

    @property
    def is_awaited(self) -> bool:
        """Whether a requested submission is still to come, even if the overlap is lower by now."""
        return redundancy.is_submission_awaited(self.votes, n_requested=self.n_initial + len(self.rounds))

    @property
    def votes(self) -> list[SubmittedVote]:
        return [submission.vote for submission in self.submissions]

    @property
    def threshold(self) -> float | None:
        """The acceptance threshold; None if the project does not settle by probability, or the fit has no threshold."""
        return self.fit.threshold if self.fit is not None and self.project.uses_probability else None


def find_due_traces(*, now: dt.datetime, limit: int = 1000) -> list[tuple[int, list[int]]]:
    """Return due traces as (project, some of its traces).

    Projects take turns, so that a busy project does not delay others. Traces that failed before come last.
    """
    rows = Settlement.objects.filter(Q(retry_at=None) | Q(retry_at__lte=now), is_due=True)
    rows = rows.order_by("n_failures", "trace_id")
    projects = Project.objects.filter(Exists(rows.filter(project=OuterRef("pk")))).order_by("pk")
    project_ids = list(projects.values_list("pk", flat=True))
    share = max(limit // max(len(project_ids), 1), CHUNK)
    traces = {pk: list(rows.filter(project=pk).values_list("trace_id", flat=True)[:share]) for pk in project_ids}
    return [
        (pk, traces[pk][start : start + CHUNK])
        for start in range(0, share, CHUNK)
        for pk in project_ids
        if traces[pk][start:]
    ]


def resolve_traces(*, project_id: int, trace_ids: Sequence[int], now: dt.datetime) -> int:
    """Resolve those of these traces that are due and not being submitted right now. Return how many."""
    with transaction.atomic():
        locked = resolution_state.lock_traces(trace_ids=trace_ids, skips=True)
        rows = list(Settlement.objects.filter(trace_id__in=locked, is_due=True).order_by("trace_id"))
        if not rows:
            return 0
        with running_totals.track_totals(project_id=project_id, trace_ids=[row.trace_id for row in rows]):
            _resolve_all(Project.objects.get(pk=project_id), rows, now)
    return len(rows)


def _resolve_all(project: Project, rows: Sequence[Settlement], now: dt.datetime) -> None:
    traces = [row.trace_id for row in rows]
    submissions = submitted_readings.load_submitted_reports(traces)
    voting = submitted_readings.select_voting(submissions)
    _save_reports(project, voting)
    fit = rater_model.load_current_fit(project.pk)
    trace_posteriors = _compute_posteriors(fit, voting)
    assisted = _compute_assisted_consensus(project.pk, submissions)
    n_initial, rounds = queue.count_initial_slots(trace_ids=traces), _load_added_rounds(traces)
    for row in rows:
        review = _TraceReview(
            row=row,
            project=project,
            n_initial=n_initial.get(row.trace_id, project.overlap),
            rounds=rounds.get(row.trace_id, set()),
            submissions=voting[row.trace_id],
            posterior=trace_posteriors.get(row.trace_id),
            fit=fit,
            assisted=assisted.get(row.trace_id, NO_ASSISTED_CONSENSUS),
        )
        _resolve_trace(review, now)


def schedule_retry(*, trace_id: int, now: dt.datetime) -> None:
    """Schedule the next attempt after a failure, doubling the delay each time."""
    for row in Settlement.objects.filter(trace_id=trace_id, is_due=True):
        row.n_failures = min(row.n_failures + 1, _MAX_FAILURES)
        row.retry_at = now + min(_RETRY_AFTER * 2 ** (row.n_failures - 1), _MAX_RETRY_AFTER)
        row.save(update_fields=["n_failures", "retry_at"])


def _compute_posteriors(
    fit: RaterModelFit | None, by_trace: Mapping[int, list[SubmittedReport]]
) -> dict[int, Posterior]:
    observations = [row.as_observation(trace_id) for trace_id, rows in by_trace.items() for row in rows]
    if fit is None or not observations:
        return {}
    shapes = posteriors.load_trace_shapes(row.trace_id for row in observations)
    return posteriors.compute_posteriors(fit, shapes, observations)


def _compute_assisted_consensus(
    project_id: int, submissions: Mapping[int, list[SubmittedReport]]
) -> dict[int, AssistedConsensus]:
    """Return the result of all submissions together, for traces with assisted ones."""
    by_trace = {trace: rows for trace, rows in submissions.items() if not all(row.is_blind for row in rows)}
    if not by_trace:
        return {}
    trace_posteriors = _compute_posteriors(rater_model.load_current_fit(project_id, FitBasis.ASSISTED), by_trace)
    return {
        trace: AssistedConsensus(_uncensored_positions(rows), trace_posteriors.get(trace))
        for trace, rows in by_trace.items()
    }


def _uncensored_positions(submissions: Sequence[SubmittedReport]) -> list[int | None]:
    return [row.report.position for row in submissions if not row.report.is_censored]


def _save_reports(project: Project, by_trace: dict[int, list[SubmittedReport]]) -> None:
    rows = [
        FirstErrorReport(
            assignment_id=row.assignment_id,
            trace_id=trace_id,
            project=project,
            rater_id=row.rater_id,
            revision=row.revision,
            first_error=row.report.position,
            n_passed=row.report.n_passed,
            is_censored=row.report.is_censored,
            has_bad_problem=row.vote.has_bad_problem,
        )
        for trace_id, submissions in by_trace.items()
        for row in submissions
    ]
    changing = ["revision", "first_error", "n_passed", "is_censored", "has_bad_problem"]
    FirstErrorReport.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["assignment"], update_fields=changing, batch_size=200
    )


def _load_added_rounds(trace_ids: Sequence[int]) -> dict[int, set[int]]:
    """Return the rounds in which one more submission was requested."""
    rounds: dict[int, set[int]] = defaultdict(set)
    for trace_id, number in AddedSlot.objects.filter(trace_id__in=trace_ids).values_list("trace_id", "round"):
        rounds[trace_id].add(number)
    return rounds


def _resolve_trace(review: _TraceReview, now: dt.datetime) -> None:
    row, project = review.row, review.project
    row.is_due, row.n_readings = False, len(review.submissions)
    row.n_failures, row.retry_at = 0, None
    if project.protocol == Protocol.LIVE:
        _set_state(row, SettlementState.LIVE, "live", now)
    else:
        weighed = _weigh_review(review)
        row.n_votes, row.differs_at = weighed.n_votes, weighed.differs_at
        if row.state != SettlementState.DECIDED and not _is_sent_back(review):
            _apply_outcome(review, weighed, now)
    row.save()


def _is_sent_back(review: _TraceReview) -> bool:
    """Tell whether a person requested one more submission that has not come yet. Until then, the state is kept."""
    return review.row.reason == SENT_BACK and len(review.submissions) < max(review.rounds, default=0)


def _weigh_review(review: _TraceReview) -> WeighedVotes:
    n_requested = review.overlap + len(review.rounds)
    weighed = redundancy.weigh_votes(review.votes, overlap=review.overlap, added=len(review.rounds))
    if review.posterior is None or review.threshold is None:
        return weighed
    leading = review.posterior.leading
    return redundancy.accept_by_probability(
        weighed,
        review.votes,
        leading=leading,
        probability=review.posterior.probability_at(leading),
        threshold=review.threshold,
        is_awaited=redundancy.is_submission_awaited(review.votes, n_requested=n_requested),
    )


def _apply_outcome(review: _TraceReview, weighed: WeighedVotes, now: dt.datetime) -> None:
    row = review.row
    if weighed.course == ResolutionCourse.SETTLED:
        _save_consensus(review, weighed, now)
        return
    row.consensus_revision = 0
    if weighed.course == ResolutionCourse.WAIT:
        is_first = weighed.reason == "first_readings"
        _set_state(row, SettlementState.READING if is_first else SettlementState.ASKED, weighed.reason, now)
    elif weighed.course == ResolutionCourse.ASK and (_request_submission(review, now) or review.is_awaited):
        _set_state(row, SettlementState.ASKED, weighed.reason, now)
    else:
        reason = weighed.reason if weighed.course == ResolutionCourse.CONTESTED else f"{weighed.reason}_at_limit"
        _contest(row, reason, now)


def _request_submission(review: _TraceReview, now: dt.datetime) -> bool:
    """Open one more slot, except for traces that were imported with their labels."""
    pk, number = review.row.trace_id, len(review.submissions)
    if number in review.rounds and not review.is_awaited:  # the round was used by a request of a person, now fulfilled
        number = max(review.rounds) + 1
    return queue.is_labeled_here(trace_id=pk) and queue.add_slot(trace_id=pk, round=number, now=now)


def _contest(row: Settlement, reason: str, now: dt.datetime) -> None:
    if row.state != SettlementState.CONTESTED:
        detail = {"reason": reason, "readings": row.n_readings}
        subject = f"trace:{row.trace_id}"
        audit_log.log_event(
            what="trace.contested", by=None, now=now, project=row.project_id, subject=subject, detail=detail
        )
    _set_state(row, SettlementState.CONTESTED, reason, now)


def _save_consensus(review: _TraceReview, weighed: WeighedVotes, now: dt.datetime) -> None:
    row = review.row
    row.consensus_revision = consensus.save_revision(
        trace_id=row.trace_id,
        project_id=review.project.pk,
        first_error=weighed.first_error,
        source=ConsensusSource.RATERS,
        confidence=weighed.share,
        n_votes=weighed.n_votes,
        labels=derive_labels(review.project, review.submissions, weighed.first_error, review.posterior),
        posterior=review.posterior,
        assisted=review.assisted,
        now=now,
        by=None,
    )
    _set_state(row, SettlementState.SETTLED, weighed.reason, now)


def derive_labels(
    project: Project, submissions: list[SubmittedReport], first_error: int | None, posterior: Posterior | None = None
) -> list[StepLabel]:
    """Return the step labels that follow from a consensus on the first error."""
    ratings = list(_load_ratings(submissions))
    if project.protocol == Protocol.EVERY_STEP:
        return step_labels.labels_from_every_step(ratings)
    votes = _uncensored_positions(submissions)
    probability = None
    if posterior is not None:
        probability = PlaceProbability(posterior.probability_at, posterior.probability_after)
    return step_labels.labels_from_first_error(ratings, first_error=first_error, votes=votes, probability=probability)


def _load_ratings(submissions: list[SubmittedReport]) -> Iterator[OptionRating]:
    first_errors = {(row.assignment_id, row.revision): row.report.position for row in submissions}
    rows = Judgment.objects.filter(
        turn__assignment_id__in=[row.assignment_id for row in submissions],
        rating__isnull=False,
        turn__step__is_rateable=True,
    ).values_list("turn__assignment_id", "turn__revision", "turn__step__position", "option__position", "rating")
    for assignment_id, revision, step, option, rating in rows:
        if rating is not None and (assignment_id, revision) in first_errors:
            yield OptionRating(step, option, rating, first_errors[assignment_id, revision])


def load_voting_submissions(trace_id: int) -> list[SubmittedReport]:
    return submitted_readings.select_voting(submitted_readings.load_submitted_reports([trace_id]))[trace_id]


def _set_state(row: Settlement, state: SettlementState, reason: str, now: dt.datetime) -> None:
    if (row.state, row.reason) != (state, reason):
        row.state, row.reason, row.changed_at = state, reason, now
