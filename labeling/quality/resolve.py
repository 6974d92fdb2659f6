"""Resolve submitted traces: settle them, request one more submission, or mark them as contested.

Runs soon after a submit, a few traces per transaction. It locks the traces, as submits do, so the submissions cannot
change while a trace is resolved. Decisions by a person are final. Only this module writes reports; besides
`adjudication`, only this module changes settlements.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import orjson
import structlog
from django.db import DatabaseError, transaction

import rawsql
from events import audit_log
from labeling import queue
from labeling.models import LicensedLabel, Project, RaterModelFit, Settlement
from labeling.models.consensus import ConsensusSource, FitBasis, SettlementState
from labeling.models.project import Protocol
from labeling.quality import (
    consensus,
    licensed_labels,
    posteriors,
    project_stats,
    rater_model,
    redundancy,
    settlements,
    submitted_reports,
)
from labeling.quality.consensus import (
    NO_ASSISTED_CONSENSUS,
    AssistedConsensus,
    RevisionDraft,
    StepLabel,
)
from labeling.quality.new_submissions import process_new_submissions
from labeling.quality.posteriors import Posterior
from labeling.quality.redundancy import ResolutionCourse, WeighedVotes
from labeling.quality.submitted_reports import RevisionReport

logger = structlog.get_logger(__name__)

CHUNK = 20
SENT_BACK = "sent_back"  # the reason after a person requested a label; the last round is the number of that submission
REOPENED = "reopened"  # the reason after a person reopened the trace; only a person ends this state
SET_ASIDE = "set_aside"  # the reason while labels are missing because they were set aside
_RETRY_AFTER, _MAX_RETRY_AFTER = dt.timedelta(seconds=3), dt.timedelta(hours=1)
_MAX_FAILURES = 20


@dataclass
class _TraceReview:
    """The data of one trace to resolve.

    `submissions` are those that vote. `n_initial` slots were opened at first, and one more in each of the `rounds`. A
    submission that was set aside casts no vote; `n_aside` of them still hold their slots.
    """

    row: Settlement
    project: Project
    n_initial: int
    rounds: set[int]
    submissions: list[RevisionReport]
    posterior: Posterior | None
    threshold: float | None  # for acceptance; None if the project does not settle by probability
    assisted: AssistedConsensus
    n_aside: int = 0
    has_set_aside: bool = False
    is_returnable: bool = False  # slots of submissions that were set aside can be given to others
    n_returned: int = 0  # how many of these slots this resolution gives to others
    is_in_lane: bool = True
    settles_by_model: bool = False
    licensed: LicensedLabel | None = None  # the label of a machine that may count here

    @property
    def overlap(self) -> int:
        """The project's overlap, but at most the initial slots: raising the overlap does not reopen finished traces."""
        return min(self.project.overlap, self.n_initial)

    @property
    def can_ask(self) -> bool:
        """Whether the project's limit allows one more submission."""
        is_below_limit = self.n_initial + len(self.rounds) < self.project.overlap_limit
        return self.is_in_lane and (is_below_limit or bool(self.n_aside and self.is_returnable))

    @property
    def is_awaited(self) -> bool:
        """Whether a requested submission is still to come, even if the overlap is lower by now."""
        n_requested = self.n_initial + len(self.rounds) - self.n_aside
        return redundancy.is_submission_awaited(self.submissions, n_requested=n_requested)

    @property
    def n_missing(self) -> int:
        """How many of the initial labels neither arrived nor are awaited, because submissions were set aside."""
        n_requested = self.n_initial + len(self.rounds) - self.n_aside
        n_arrived = sum(not report.is_extra for report in self.submissions)
        return min(self.n_aside, max(0, self.overlap - max(n_arrived, n_requested)))


def resolve_due_traces(*, now: dt.datetime, limit: int = 1000) -> int:
    """Count new submissions, then resolve due traces of all projects, every few seconds. Return how many."""
    process_new_submissions(now=now, limit=limit)
    n_resolved = 0
    for project_id, traces in find_due_traces(now=now, limit=limit):
        n_resolved += resolve_or_retry(project_id=project_id, trace_ids=traces, now=now)
        project_stats.mark_stats_stale(project_id=project_id, now=now, is_awaited=False)
    return n_resolved


def resolve_or_retry(*, project_id: int, trace_ids: list[int], now: dt.datetime) -> int:
    """Resolve traces together or, if that fails, one by one, so that one failing trace does not block the others."""
    try:
        return resolve_traces(project_id=project_id, trace_ids=trace_ids, now=now)
    except DatabaseError:
        raise  # not caused by a trace; the next round retries
    except Exception:
        if len(trace_ids) > 1:
            return sum(resolve_or_retry(project_id=project_id, trace_ids=[each], now=now) for each in trace_ids)
        # The trace stays due, and each failed attempt is logged.
        logger.exception("trace.not_settled", trace=trace_ids[0], project=project_id)
        _schedule_retry(trace_ids[0], now)
        return 0


def _schedule_retry(trace_id: int, now: dt.datetime) -> None:
    """Schedule the next attempt after a failure, doubling the delay each time."""
    for row in Settlement.objects.filter(trace_id=trace_id, is_due=True):
        row.n_failures = min(row.n_failures + 1, _MAX_FAILURES)
        row.retry_at = now + min(_RETRY_AFTER * 2 ** (row.n_failures - 1), _MAX_RETRY_AFTER)
        row.save(update_fields=["n_failures", "retry_at"])


def find_due_traces(*, now: dt.datetime, limit: int = 1000) -> list[tuple[int, list[int]]]:
    """Return due traces as (project, some of its traces). Projects take turns; traces that failed earlier come last."""
    project_ids = [pk for (pk,) in rawsql.fetch_rows(_FIND_DUE_PROJECTS, {"now": now})]
    share = max(limit // max(len(project_ids), 1), CHUNK)
    found = {pk: rawsql.fetch_rows(_FIND_DUE, {"now": now, "project": pk, "limit": share}) for pk in project_ids}
    traces = {pk: [trace_id for (trace_id,) in rows] for pk, rows in found.items()}
    return [
        (pk, traces[pk][start : start + CHUNK])
        for start in range(0, share, CHUNK)
        for pk in project_ids
        if traces[pk][start:]
    ]


_IS_DUE = "is_due AND (retry_at IS NULL OR retry_at <= %(now)s)"
_FIND_DUE_PROJECTS = f"""
SELECT p.id FROM labeling_project p
WHERE EXISTS (SELECT FROM labeling_settlement WHERE project_id = p.id AND {_IS_DUE}) ORDER BY p.id"""  # noqa: S608  our own constant
_FIND_DUE = f"""
SELECT trace_id FROM labeling_settlement WHERE project_id = %(project)s AND {_IS_DUE}
ORDER BY n_failures, trace_id LIMIT %(limit)s"""  # noqa: S608  our own constant


def resolve_traces(*, project_id: int, trace_ids: Sequence[int], now: dt.datetime) -> int:
    """Resolve those of these traces that are due and not being submitted right now. Return how many."""
    with transaction.atomic():
        locked = settlements.lock_traces(trace_ids=trace_ids, skips=True)
        rows = settlements.load_due_settlements(trace_ids=locked)
        if not rows:
            return 0
        with settlements.track_totals(project_id=project_id, trace_ids=[row.trace_id for row in rows]):
            _resolve_all(Project.objects.get(pk=project_id), rows, now)
    return len(rows)


def _resolve_all(project: Project, rows: Sequence[Settlement], now: dt.datetime) -> None:
    submissions = submitted_reports.load_submitted_reports([row.trace_id for row in rows])
    _save_reports(project, _select_voting(submissions))
    reviews = list(_build_reviews(project, rows, submissions, _load_set_aside([row.trace_id for row in rows])))
    licensed = LicensedLabel.objects.counting().in_bulk([row.trace_id for row in rows])
    for review in reviews:
        review.licensed = licensed.get(review.row.trace_id)
    settled = [(review, weighed) for review in reviews if (weighed := _resolve_trace(review, now)) is not None]
    _save_consensus(project, settled, now)
    _settle_with_machines([review for review in reviews if review.licensed is not None], now)
    settlements.save_resolved(rows)
    returned = {review.row.trace_id: review.n_returned for review in reviews if review.n_returned}
    if returned:
        queue.return_set_aside_slots(numbers=returned, now=now)


def _select_voting(submissions: Mapping[int, list[RevisionReport]]) -> dict[int, list[RevisionReport]]:
    return {trace: [report for report in reports if report.is_blind] for trace, reports in submissions.items()}


def _build_reviews(
    project: Project,
    rows: Sequence[Settlement],
    submissions: Mapping[int, list[RevisionReport]],
    set_aside: Mapping[int, list[bool]],
) -> Iterator[_TraceReview]:
    traces, voting = [row.trace_id for row in rows], _select_voting(submissions)
    fit = rater_model.load_current_fit(project.pk)
    threshold = fit.threshold if fit is not None and project.uses_probability else None
    trace_posteriors = _compute_posteriors(fit, voting)
    assisted = _compute_assisted_consensus(project.pk, submissions)
    n_initial, rounds = queue.count_initial_slots(trace_ids=traces), _load_added_rounds(traces)
    returnable = queue.find_returnable(set_aside.keys()) if set_aside else set()
    for row in rows:
        yield _TraceReview(
            row=row,
            project=project,
            n_initial=n_initial.get(row.trace_id, project.overlap),
            rounds=rounds.get(row.trace_id, set()),
            submissions=voting[row.trace_id],
            posterior=trace_posteriors.get(row.trace_id),
            threshold=threshold,
            assisted=assisted.get(row.trace_id, NO_ASSISTED_CONSENSUS),
            n_aside=sum(set_aside.get(row.trace_id, ())),
            has_set_aside=row.trace_id in set_aside,
            is_returnable=row.trace_id in returnable,
            is_in_lane=row.trace_id in n_initial,
            settles_by_model=fit is not None and fit.settles_traces,
        )


def _load_set_aside(trace_ids: Sequence[int]) -> dict[int, list[bool]]:
    """Return for each work submission that was set aside whether it still holds its slot, by trace."""
    holds: dict[int, list[bool]] = defaultdict(list)
    for trace_id, holds_slot in rawsql.fetch_rows(_LOAD_SET_ASIDE, {"traces": list(trace_ids)}):
        holds[trace_id].append(holds_slot)
    return holds


_LOAD_SET_ASIDE = """
SELECT trace_id, holds_slot FROM labeling_assignment
WHERE trace_id = ANY (%(traces)s::bigint[]) AND state = 'submitted' AND purpose = 'work' AND set_aside_id IS NOT NULL"""


class SettlingPreview(NamedTuple):
    """How a trace would be settled without some of its labels."""

    trace_id: int
    was_resolved: bool  # settled or decided now
    was_decided: bool  # by a person: stays as it is
    course: ResolutionCourse
    changes: bool  # is settled and gets another first error
    n_missing: int  # labels that would be requested now


def preview_without(
    *, project: Project, trace_ids: Sequence[int], assignments: Collection[int]
) -> list[SettlingPreview]:
    """Return how these traces would be settled without some assignments."""
    rows = list(Settlement.objects.filter(trace_id__in=trace_ids).order_by("trace_id"))
    traces = [row.trace_id for row in rows]
    loaded = submitted_reports.load_submitted_reports(traces)
    submissions = {
        trace: [report for report in reports if report.assignment_id not in assignments]
        for trace, reports in loaded.items()
    }
    set_aside = _load_set_aside(traces)
    for trace, reports in loaded.items():
        held = [not report.is_extra for report in reports if report.assignment_id in assignments]
        if held:
            set_aside[trace] = [*set_aside.get(trace, ()), *held]
    current = dict(
        consensus.current_revisions(project_id=project.pk).filter(trace__in=traces).values_list("trace", "first_error")
    )
    return [_preview(review, current) for review in _build_reviews(project, rows, submissions, set_aside)]


def _preview(review: _TraceReview, current: Mapping[int, int | None]) -> SettlingPreview:
    trace, weighed = review.row.trace_id, _weigh_review(review)
    n_missing = 0
    if review.is_in_lane and review.row.state != SettlementState.DECIDED:
        is_asked = weighed.course == ResolutionCourse.ASK
        is_waiting = weighed.course == ResolutionCourse.WAIT
        n_missing = max(review.n_missing, int(is_asked)) if is_asked or is_waiting else 0
    return SettlingPreview(
        trace_id=trace,
        was_resolved=review.row.state in settlements.RESOLVED_STATES,
        was_decided=review.row.state == SettlementState.DECIDED,
        course=weighed.course,
        changes=(
            weighed.course == ResolutionCourse.SETTLED and trace in current and current[trace] != weighed.first_error
        ),
        n_missing=n_missing,
    )


def _compute_posteriors(
    fit: RaterModelFit | None, by_trace: Mapping[int, list[RevisionReport]]
) -> dict[int, Posterior]:
    reports = [report for reports in by_trace.values() for report in reports]
    if fit is None or not reports:
        return {}
    shapes = posteriors.load_trace_shapes(report.trace_id for report in reports)
    return posteriors.compute_posteriors(fit, shapes, reports)


def _compute_assisted_consensus(
    project_id: int, submissions: Mapping[int, list[RevisionReport]]
) -> dict[int, AssistedConsensus]:
    """Return the result of all submissions together, for traces with assisted ones."""
    by_trace = {trace: rows for trace, rows in submissions.items() if not all(row.is_blind for row in rows)}
    if not by_trace:
        return {}
    trace_posteriors = _compute_posteriors(rater_model.load_current_fit(project_id, FitBasis.ASSISTED), by_trace)
    return {
        trace: AssistedConsensus(consensus.uncensored_positions(rows), trace_posteriors.get(trace))
        for trace, rows in by_trace.items()
    }


def _save_reports(project: Project, by_trace: Mapping[int, list[RevisionReport]]) -> None:
    rows = [
        {
            "assignment_id": report.assignment_id,
            "trace_id": report.trace_id,
            "project_id": project.pk,
            "rater_id": report.rater_id,
            "revision": report.revision,
            "first_error": report.position,
            "n_passed": report.n_passed,
            "is_censored": report.is_censored,
            "has_bad_problem": report.has_bad_problem,
        }
        for reports in by_trace.values()
        for report in reports
        if not report.is_stored
    ]
    if rows:
        rawsql.fetch_rows(_SAVE_REPORTS, {"rows": orjson.dumps(rows).decode()})


_SAVE_REPORTS = """
INSERT INTO labeling_firsterrorreport
SELECT * FROM json_populate_recordset(NULL::labeling_firsterrorreport, %(rows)s::json)
ON CONFLICT (assignment_id) DO UPDATE SET revision = excluded.revision, first_error = excluded.first_error,
  n_passed = excluded.n_passed, is_censored = excluded.is_censored, has_bad_problem = excluded.has_bad_problem"""


def _load_added_rounds(trace_ids: Sequence[int]) -> dict[int, set[int]]:
    """Return the rounds in which one more submission was requested."""
    rounds: dict[int, set[int]] = defaultdict(set)
    for trace_id, number in rawsql.fetch_rows(_LOAD_ADDED_ROUNDS, {"traces": list(trace_ids)}):
        rounds[trace_id].add(number)
    return rounds


_LOAD_ADDED_ROUNDS = "SELECT trace_id, round FROM labeling_addedslot WHERE trace_id = ANY (%(traces)s::bigint[])"


def _resolve_trace(review: _TraceReview, now: dt.datetime) -> WeighedVotes | None:
    """Set the new state of a trace, without saving it. Return the votes if they settle the trace."""
    row, project = review.row, review.project
    row.is_due, row.n_readings = False, len(review.submissions)
    row.n_failures, row.retry_at = 0, None
    if project.protocol == Protocol.LIVE:
        _set_state(row, SettlementState.LIVE, "live", now)
    else:
        weighed = _weigh_review(review)
        row.n_votes, row.differs_at = weighed.n_votes, weighed.differs_at
        if row.state != SettlementState.DECIDED and row.reason != REOPENED and not _is_sent_back(review):
            return _apply_outcome(review, weighed, now)
    return None


def _settle_with_machines(reviews: Sequence[_TraceReview], now: dt.datetime) -> None:
    """Settle traces with the labels of licensed machines where people alone have not settled them."""
    results: dict[int, tuple[int | None, int] | None] = {}
    for review in reviews:
        row, label = review.row, review.licensed
        found = None
        if label is not None and row.state in (SettlementState.READING, SettlementState.ASKED):
            n_added = len(review.rounds)
            found = licensed_labels.weigh_with_people(
                label, review.submissions, overlap=review.overlap, added=n_added, set_aside=review.n_aside
            )
        results[row.trace_id] = None
        if found is not None and not _is_sent_back(review) and row.reason != REOPENED:
            results[row.trace_id] = (found[1], len(review.submissions))
            _set_state(row, SettlementState.ASSISTED, found[0], now)
    if results:
        licensed_labels.save_results(results=results, project_id=reviews[0].project.pk, now=now)


def _is_sent_back(review: _TraceReview) -> bool:
    """Tell whether a person requested one more submission that has not come yet. Until then, the state is kept."""
    n_submissions = len(review.submissions) + review.n_aside
    return review.row.reason == SENT_BACK and n_submissions < max(review.rounds, default=0)


def _weigh_review(review: _TraceReview) -> WeighedVotes:
    n_added = len(review.rounds)
    weighed = redundancy.weigh_votes(
        review.submissions, overlap=review.overlap, added=n_added, set_aside=review.n_aside
    )
    if review.posterior is None:
        return weighed
    if review.threshold is None:
        return redundancy.settle_by_model(
            weighed,
            review.submissions,
            review.posterior.probability_at,
            decides=review.settles_by_model,
            can_ask=review.can_ask,
            overlap=review.overlap,
            n_requested=review.overlap + n_added - review.n_aside,
        )
    leading = review.posterior.leading
    return redundancy.accept_by_probability(
        weighed,
        review.submissions,
        leading=leading,
        probability=review.posterior.probability_at(leading),
        threshold=review.threshold,
        n_requested=review.overlap + n_added - review.n_aside,
    )


def _apply_outcome(review: _TraceReview, weighed: WeighedVotes, now: dt.datetime) -> WeighedVotes | None:
    row = review.row
    if weighed.course == ResolutionCourse.SETTLED:
        _set_state(row, SettlementState.SETTLED, weighed.reason, now)
        return weighed
    row.consensus_revision = 0
    reason = weighed.reason
    if review.has_set_aside and len(review.submissions) < review.overlap:
        reason = SET_ASIDE
    if weighed.course == ResolutionCourse.WAIT:
        review.n_returned = review.n_missing if review.is_returnable else 0
        is_asked = review.is_in_lane if reason == SET_ASIDE else reason != "first_readings"
        _set_state(row, SettlementState.ASKED if is_asked else SettlementState.READING, reason, now)
    elif weighed.course == ResolutionCourse.ASK and (_request_submission(review, now) or review.is_awaited):
        _set_state(row, SettlementState.ASKED, reason, now)
    elif weighed.otherwise is not None:
        return _apply_outcome(review, weighed.otherwise, now)
    else:
        is_contested = weighed.course == ResolutionCourse.CONTESTED
        _contest(row, weighed.reason if is_contested else f"{reason}_at_limit", now)
    return None


def _request_submission(review: _TraceReview, now: dt.datetime) -> bool:
    """Open one more slot, except for traces that were imported with their labels. Slots of submissions that were set
    aside are opened again first: they do not count toward the limit."""
    pk, number = review.row.trace_id, len(review.submissions)
    if review.n_aside and review.is_returnable:
        review.n_returned = max(review.n_missing, 1)
        return True
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


def _save_consensus(project: Project, settled: Sequence[tuple[_TraceReview, WeighedVotes]], now: dt.datetime) -> None:
    ratings = consensus.load_ratings([report for review, _ in settled for report in review.submissions])
    drafts = [
        RevisionDraft(
            trace_id=review.row.trace_id,
            project_id=project.pk,
            first_error=weighed.first_error,
            source=ConsensusSource.RATERS,
            confidence=weighed.share,
            n_votes=weighed.n_votes,
            labels=consensus.derive_labels(project, review.submissions, ratings, weighed.first_error, review.posterior),
            posterior=review.posterior,
            assisted=review.assisted,
        )
        for review, weighed in settled
    ]
    revisions = consensus.save_revisions(drafts=drafts, now=now, by=None)
    for review, _ in settled:
        review.row.consensus_revision = revisions[review.row.trace_id]


def derive_decided_labels(row: Settlement, first_error: int | None) -> list[StepLabel]:
    """Return the raters' labels that agree with a person's decision, with confidence 1, and the decided first error."""
    submissions = load_voting_submissions(row.trace_id)
    return consensus.agree_with_decision(row.project, submissions, consensus.load_ratings(submissions), first_error)


def load_voting_submissions(trace_id: int) -> list[RevisionReport]:
    return [report for report in submitted_reports.load_submitted_reports([trace_id])[trace_id] if report.is_blind]


def _set_state(row: Settlement, state: SettlementState, reason: str, now: dt.datetime) -> None:
    if (row.state, row.reason) != (state, reason):
        row.state, row.reason, row.changed_at = state, reason, now
