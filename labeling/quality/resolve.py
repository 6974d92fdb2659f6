"""Looks at traces that something was submitted for: settles them, asks for a further opinion, or says that they are
contested. With `adjudication` alone writes reports, settlements and consensus.

Runs soon after a submit, a few traces a transaction. It holds the traces that it looks at, as a submit does, so that
nothing is submitted between the look and what is made of it. What was decided by a person stays decided.
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
from labeling.quality.redundancy import ResolutionCourse, WeighedVotes
from labeling.quality.step_labels import OptionRating, PlaceProbability, StepLabel
from labeling.quality.submitted_readings import SubmittedReading

CHUNK = 20
SENT_BACK = "sent_back"  # the reason, where a person asked; the round names the reading that is waited for
_RETRY_AFTER, _MAX_RETRY_AFTER = dt.timedelta(seconds=3), dt.timedelta(hours=1)
_MAX_FAILURES = 20


@dataclass
class _TraceReview:
    """What is known of one trace while it is looked at. `readings` are those that have a vote; `given` were given out
    from the start, and one more in each of the `rounds`."""

    row: Settlement
    project: Project
    given: int
    rounds: set[int]
    readings: list[SubmittedReading]
    posterior: Posterior | None
    fit: RaterModelFit | None
    assisted: AssistedConsensus

    @property
    def overlap(self) -> int:
        """How many are asked for from the start: as the project has it, but no more than were given out, since a trace
        that was contested or settled is not given out again where the project asks for more."""
        return min(self.project.overlap, self.given)

    @property
    def is_awaited(self) -> bool:
        """Whether one that was given out is still to come, also where fewer are asked for by now."""
        said = [each.said for each in self.readings]
        return redundancy.is_reading_awaited(said, n_given_out=self.given + len(self.rounds))

    @property
    def threshold(self) -> float | None:
        """From which probability on the project accepts; None where it does not, or no threshold keeps the promise."""
        return self.fit.threshold if self.fit is not None and self.project.uses_probability else None


def find_due_traces(*, now: dt.datetime, limit: int = 1000) -> list[tuple[int, list[int]]]:
    """Traces to be looked at, as (project, some of its traces): a few of each project in turn, so that one in which
    everybody submits at once keeps no other waiting. Every project has its share, however many there are. Those that
    could not be settled come behind all others, those that were tried least first."""
    rows = Settlement.objects.filter(Q(retry_at=None) | Q(retry_at__lte=now), is_due=True)
    rows = rows.order_by("n_failures", "trace_id")
    projects = Project.objects.filter(Exists(rows.filter(project=OuterRef("pk")))).order_by("pk")
    waiting = list(projects.values_list("pk", flat=True))
    share = max(limit // max(len(waiting), 1), CHUNK)
    traces = {pk: list(rows.filter(project=pk).values_list("trace_id", flat=True)[:share]) for pk in waiting}
    return [
        (pk, traces[pk][start : start + CHUNK])
        for start in range(0, share, CHUNK)
        for pk in waiting
        if traces[pk][start:]
    ]


def resolve_traces(*, project_id: int, trace_ids: Sequence[int], now: dt.datetime) -> int:
    """Look at these traces, as far as they are due and nobody submits them right now. Says how many were."""
    with transaction.atomic():
        held = resolution_state.lock_traces(trace_ids=trace_ids, skips=True)
        rows = list(Settlement.objects.filter(trace_id__in=held, is_due=True).order_by("trace_id"))
        if not rows:
            return 0
        with running_totals.track_totals(project_id=project_id, trace_ids=[row.trace_id for row in rows]):
            _resolve_all(Project.objects.get(pk=project_id), rows, now)
    return len(rows)


def _resolve_all(project: Project, rows: Sequence[Settlement], now: dt.datetime) -> None:
    traces = [row.trace_id for row in rows]
    every, added = submitted_readings.load_readings(traces), _load_added_rounds(traces)
    readings = submitted_readings.select_voting_readings(every)
    _save_reports(project, readings)
    fit = rater_model.load_current_fit(project.pk)
    believed, assisted = _compute_posteriors(fit, readings), _load_assisted_consensus(project.pk, every)
    given = queue.count_initial_slots(trace_ids=traces)
    for row in rows:
        pk = row.trace_id
        n, rounds = given.get(pk, project.overlap), added.get(pk, set())
        told = (readings[pk], believed.get(pk), fit, assisted.get(pk, NO_ASSISTED_CONSENSUS))
        _resolve_trace(_TraceReview(row, project, n, rounds, *told), now)


def schedule_retry(*, trace_id: int, now: dt.datetime) -> None:
    """It could not be settled: it is tried again, each time after twice as long, and keeps no other waiting."""
    for row in Settlement.objects.filter(trace_id=trace_id, is_due=True):
        row.n_failures = min(row.n_failures + 1, _MAX_FAILURES)
        row.retry_at = now + min(_RETRY_AFTER * 2 ** (row.n_failures - 1), _MAX_RETRY_AFTER)
        row.save(update_fields=["n_failures", "retry_at"])


def _compute_posteriors(
    fit: RaterModelFit | None, readings: Mapping[int, list[SubmittedReading]]
) -> dict[int, Posterior]:
    """What the project's fit makes of these readings; nothing where there is none yet."""
    read = {trace_id: of_trace for trace_id, of_trace in readings.items() if of_trace}
    if fit is None or not read:
        return {}
    seen = [each.seen(trace_id) for trace_id, of_trace in read.items() for each in of_trace]
    return posteriors.compute_posteriors(fit, posteriors.load_trace_shapes(read), seen)


def _load_assisted_consensus(
    project_id: int, every: Mapping[int, list[SubmittedReading]]
) -> dict[int, AssistedConsensus]:
    """Of traces that machines or whoever saw scores have read too: what all say together."""
    read = {trace: of_trace for trace, of_trace in every.items() if not all(each.is_blind for each in of_trace)}
    if not read:
        return {}
    believed = _compute_posteriors(rater_model.load_current_fit(project_id, FitBasis.ASSISTED), read)
    return {
        trace: AssistedConsensus(
            [each.report.position for each in of_trace if not each.report.is_censored], believed.get(trace)
        )
        for trace, of_trace in read.items()
    }


def _save_reports(project: Project, readings: dict[int, list[SubmittedReading]]) -> None:
    rows = [
        FirstErrorReport(
            assignment_id=each.assignment_id,
            trace_id=trace_id,
            project=project,
            rater_id=each.rater_id,
            revision=each.revision,
            first_error=each.report.position,
            n_passed=each.report.n_passed,
            is_censored=each.report.is_censored,
            has_bad_problem=each.said.has_bad_problem,
        )
        for trace_id, of_trace in readings.items()
        for each in of_trace
    ]
    changing = ["revision", "first_error", "n_passed", "is_censored", "has_bad_problem"]
    FirstErrorReport.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["assignment"], update_fields=changing, batch_size=200
    )


def _load_added_rounds(trace_ids: Sequence[int]) -> dict[int, set[int]]:
    """The rounds in which a further opinion was asked for."""
    rounds: dict[int, set[int]] = defaultdict(set)
    for trace_id, number in AddedSlot.objects.filter(trace_id__in=trace_ids).values_list("trace_id", "round"):
        rounds[trace_id].add(number)
    return rounds


def _resolve_trace(look: _TraceReview, now: dt.datetime) -> None:
    row, project = look.row, look.project
    row.is_due, row.n_readings = False, len(look.readings)
    row.n_failures, row.retry_at = 0, None
    if project.protocol == Protocol.LIVE:
        _set_state(row, SettlementState.LIVE, "live", now)
    else:
        weighed = _weigh_review(look)
        row.n_votes, row.differs_at = weighed.n_votes, weighed.differs_at
        if row.state != SettlementState.DECIDED and not _is_sent_back(look):
            _apply_outcome(look, weighed, now)
    row.save()


def _is_sent_back(look: _TraceReview) -> bool:
    """A person wants one more reading, whatever the others say: until it has come, nothing is made of them."""
    return look.row.reason == SENT_BACK and len(look.readings) < max(look.rounds, default=0)


def _weigh_review(look: _TraceReview) -> WeighedVotes:
    said, added = [each.said for each in look.readings], len(look.rounds)
    weighed = redundancy.weigh_votes(said, overlap=look.overlap, added=added)
    if look.posterior is None or look.threshold is None:
        return weighed
    leading = look.posterior.leading
    return redundancy.accept_by_probability(
        weighed,
        said,
        leading=leading,
        probability=look.posterior.of(leading),
        threshold=look.threshold,
        is_asked=redundancy.is_reading_awaited(said, n_given_out=look.overlap + added),
    )


def _apply_outcome(look: _TraceReview, weighed: WeighedVotes, now: dt.datetime) -> None:
    row = look.row
    if weighed.course == ResolutionCourse.SETTLED:
        _save_consensus(look, weighed, now)
        return
    row.consensus_revision = 0
    if weighed.course == ResolutionCourse.WAIT:
        is_first = weighed.reason == "first_readings"
        _set_state(row, SettlementState.READING if is_first else SettlementState.ASKED, weighed.reason, now)
    elif weighed.course == ResolutionCourse.ASK and (_request_reading(look, now) or look.is_awaited):
        _set_state(row, SettlementState.ASKED, weighed.reason, now)
    else:
        reason = weighed.reason if weighed.course == ResolutionCourse.CONTESTED else f"{weighed.reason}_at_limit"
        _contest(row, reason, now)


def _request_reading(look: _TraceReview, now: dt.datetime) -> bool:
    """Nobody is given to read what came in with its labels, unless somebody asks for that."""
    pk, number = look.row.trace_id, len(look.readings)
    if number in look.rounds and not look.is_awaited:  # what a person asked for was counted ahead, and is in
        number = max(look.rounds) + 1
    return queue.is_labeled_here(trace_id=pk) and queue.add_slot(trace_id=pk, round=number, now=now)


def _contest(row: Settlement, reason: str, now: dt.datetime) -> None:
    if row.state != SettlementState.CONTESTED:
        detail = {"reason": reason, "readings": row.n_readings}
        subject = f"trace:{row.trace_id}"
        audit_log.log_event(
            what="trace.contested", by=None, now=now, project=row.project_id, subject=subject, detail=detail
        )
    _set_state(row, SettlementState.CONTESTED, reason, now)


def _save_consensus(look: _TraceReview, weighed: WeighedVotes, now: dt.datetime) -> None:
    row = look.row
    row.consensus_revision = consensus.save_revision(
        trace_id=row.trace_id,
        project_id=look.project.pk,
        first_error=weighed.first_error,
        source=ConsensusSource.RATERS,
        confidence=weighed.share,
        n_votes=weighed.n_votes,
        labels=derive_labels(look.project, look.readings, weighed.first_error, look.posterior),
        posterior=look.posterior,
        assisted=look.assisted,
        now=now,
        by=None,
    )
    _set_state(row, SettlementState.SETTLED, weighed.reason, now)


def derive_labels(
    project: Project, readings: list[SubmittedReading], first_error: int | None, posterior: Posterior | None = None
) -> list[StepLabel]:
    """The step labels that follow from a consensus, from all readings as they stand."""
    ratings = list(_ratings(readings))
    if project.protocol == Protocol.EVERY_STEP:
        return step_labels.labels_from_every_step(ratings)
    votes = [each.report.position for each in readings if not each.report.is_censored]
    sure = None if posterior is None else PlaceProbability(posterior.of, posterior.after)
    return step_labels.labels_from_first_error(ratings, first_error=first_error, votes=votes, sure=sure)


def _ratings(readings: list[SubmittedReading]) -> Iterator[OptionRating]:
    of = {(each.assignment_id, each.revision): each.report.position for each in readings}
    rows = Judgment.objects.filter(
        turn__assignment_id__in=[each.assignment_id for each in readings],
        rating__isnull=False,
        turn__step__is_rateable=True,
    ).values_list("turn__assignment_id", "turn__revision", "turn__step__position", "option__position", "rating")
    for assignment_id, revision, step, option, rating in rows:
        if rating is not None and (assignment_id, revision) in of:
            yield OptionRating(step, option, rating, of[assignment_id, revision])


def load_voting_readings(trace_id: int) -> list[SubmittedReading]:
    """The readings of one trace that have a vote."""
    return submitted_readings.select_voting_readings(submitted_readings.load_readings([trace_id]))[trace_id]


def _set_state(row: Settlement, state: SettlementState, reason: str, now: dt.datetime) -> None:
    if (row.state, row.reason) != (state, reason):
        row.state, row.reason, row.changed_at = state, reason, now
