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

from events import log
from labeling import queue
from labeling.models import AddedSlot, Fit, Judgment, Project, Report, Settlement
from labeling.models.consensus import ConsensusSource, SettlementState
from labeling.models.fit import FitBasis
from labeling.models.project import Protocol
from labeling.quality import consensus, fits, hearing, posteriors, redundancy, settlements, standings, step_labels
from labeling.quality.consensus import NOBODY, Assisted
from labeling.quality.hearing import Reading
from labeling.quality.posteriors import Posterior
from labeling.quality.redundancy import Course, Weighed
from labeling.quality.step_labels import Rating, StepLabel, Sure

CHUNK = 20
SENT_BACK = "sent_back"  # the reason, where a person asked; the round names the reading that is waited for
_RETRY, _RETRY_AT_LEAST_EVERY = dt.timedelta(seconds=3), dt.timedelta(hours=1)
_MOST_FAILURES = 20


@dataclass
class _Look:
    """What is known of one trace while it is looked at. `readings` are those that have a vote; `given` were given out
    from the start, and one more in each of the `rounds`."""

    row: Settlement
    project: Project
    given: int
    rounds: set[int]
    readings: list[Reading]
    posterior: Posterior | None
    fit: Fit | None
    assisted: Assisted

    @property
    def overlap(self) -> int:
        """How many are asked for from the start: as the project has it, but no more than were given out, since a trace
        that was contested or settled is not given out again where the project asks for more."""
        return min(self.project.overlap, self.given)

    @property
    def is_awaited(self) -> bool:
        """Whether one that was given out is still to come, also where fewer are asked for by now."""
        said = [each.said for each in self.readings]
        return redundancy.is_awaited(said, n_given_out=self.given + len(self.rounds))

    @property
    def threshold(self) -> float | None:
        """From which probability on the project accepts; None where it does not, or no threshold keeps the promise."""
        return self.fit.threshold if self.fit is not None and self.project.uses_probability else None


def due(*, now: dt.datetime, limit: int = 1000) -> list[tuple[int, list[int]]]:
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


def settle(*, project_id: int, trace_ids: Sequence[int], now: dt.datetime) -> int:
    """Look at these traces, as far as they are due and nobody submits them right now. Says how many were."""
    with transaction.atomic():
        held = settlements.hold(trace_ids=trace_ids, skips=True)
        rows = list(Settlement.objects.filter(trace_id__in=held, is_due=True).order_by("trace_id"))
        if not rows:
            return 0
        with standings.counted(project_id=project_id, trace_ids=[row.trace_id for row in rows]):
            _look_at_all(Project.objects.get(pk=project_id), rows, now)
    return len(rows)


def _look_at_all(project: Project, rows: Sequence[Settlement], now: dt.datetime) -> None:
    traces = [row.trace_id for row in rows]
    every, added = hearing.every(traces), _added(traces)
    readings = hearing.with_a_vote(every)
    _keep_reports(project, readings)
    fit = fits.current(project.pk)
    believed, assisted = _believed(fit, readings), _assisted(project.pk, every)
    given = queue.given(trace_ids=traces)
    for row in rows:
        pk = row.trace_id
        n, rounds = given.get(pk, project.overlap), added.get(pk, set())
        told = (readings[pk], believed.get(pk), fit, assisted.get(pk, NOBODY))
        _look_at(_Look(row, project, n, rounds, *told), now)


def put_off(*, trace_id: int, now: dt.datetime) -> None:
    """It could not be settled: it is tried again, each time after twice as long, and keeps no other waiting."""
    for row in Settlement.objects.filter(trace_id=trace_id, is_due=True):
        row.n_failures = min(row.n_failures + 1, _MOST_FAILURES)
        row.retry_at = now + min(_RETRY * 2 ** (row.n_failures - 1), _RETRY_AT_LEAST_EVERY)
        row.save(update_fields=["n_failures", "retry_at"])


def _believed(fit: Fit | None, readings: Mapping[int, list[Reading]]) -> dict[int, Posterior]:
    """What the project's fit makes of these readings; nothing where there is none yet."""
    read = {trace_id: of_trace for trace_id, of_trace in readings.items() if of_trace}
    if fit is None or not read:
        return {}
    seen = [each.seen(trace_id) for trace_id, of_trace in read.items() for each in of_trace]
    return posteriors.of_readings(fit, posteriors.shapes(read), seen)


def _assisted(project_id: int, every: Mapping[int, list[Reading]]) -> dict[int, Assisted]:
    """Of traces that machines or whoever saw scores have read too: what all say together."""
    read = {trace: of_trace for trace, of_trace in every.items() if not all(each.is_blind for each in of_trace)}
    if not read:
        return {}
    believed = _believed(fits.current(project_id, FitBasis.ASSISTED), read)
    return {
        trace: Assisted([each.report.position for each in of_trace if not each.report.is_censored], believed.get(trace))
        for trace, of_trace in read.items()
    }


def _keep_reports(project: Project, readings: dict[int, list[Reading]]) -> None:
    rows = [
        Report(
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
    Report.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["assignment"], update_fields=changing, batch_size=200
    )


def _added(trace_ids: Sequence[int]) -> dict[int, set[int]]:
    """The rounds in which a further opinion was asked for."""
    rounds: dict[int, set[int]] = defaultdict(set)
    for trace_id, number in AddedSlot.objects.filter(trace_id__in=trace_ids).values_list("trace_id", "round"):
        rounds[trace_id].add(number)
    return rounds


def _look_at(look: _Look, now: dt.datetime) -> None:
    row, project = look.row, look.project
    row.is_due, row.n_readings = False, len(look.readings)
    row.n_failures, row.retry_at = 0, None
    if project.protocol == Protocol.LIVE:
        _move(row, SettlementState.LIVE, "live", now)
    else:
        weighed = _weighed(look)
        row.n_votes, row.differs_at = weighed.n_votes, weighed.differs_at
        if row.state != SettlementState.DECIDED and not _is_sent_back(look):
            _act(look, weighed, now)
    row.save()


def _is_sent_back(look: _Look) -> bool:
    """A person wants one more reading, whatever the others say: until it has come, nothing is made of them."""
    return look.row.reason == SENT_BACK and len(look.readings) < max(look.rounds, default=0)


def _weighed(look: _Look) -> Weighed:
    said, added = [each.said for each in look.readings], len(look.rounds)
    weighed = redundancy.weigh(said, overlap=look.overlap, added=added)
    if look.posterior is None or look.threshold is None:
        return weighed
    leading = look.posterior.leading
    return redundancy.accept(
        weighed,
        said,
        leading=leading,
        probability=look.posterior.of(leading),
        threshold=look.threshold,
        is_asked=redundancy.is_awaited(said, n_given_out=look.overlap + added),
    )


def _act(look: _Look, weighed: Weighed, now: dt.datetime) -> None:
    row = look.row
    if weighed.course == Course.SETTLED:
        _settle(look, weighed, now)
        return
    row.consensus_revision = 0
    if weighed.course == Course.WAIT:
        is_first = weighed.reason == "first_readings"
        _move(row, SettlementState.READING if is_first else SettlementState.ASKED, weighed.reason, now)
    elif weighed.course == Course.ASK and (_asks_for_another(look, now) or look.is_awaited):
        _move(row, SettlementState.ASKED, weighed.reason, now)
    else:
        reason = weighed.reason if weighed.course == Course.CONTESTED else f"{weighed.reason}_at_limit"
        _contest(row, reason, now)


def _asks_for_another(look: _Look, now: dt.datetime) -> bool:
    """Nobody is given to read what came in with its labels, unless somebody asks for that."""
    pk, number = look.row.trace_id, len(look.readings)
    if number in look.rounds and not look.is_awaited:  # what a person asked for was counted ahead, and is in
        number = max(look.rounds) + 1
    return queue.is_handed_out(trace_id=pk) and queue.add_slot(trace_id=pk, round=number, now=now)


def _contest(row: Settlement, reason: str, now: dt.datetime) -> None:
    if row.state != SettlementState.CONTESTED:
        detail = {"reason": reason, "readings": row.n_readings}
        subject = f"trace:{row.trace_id}"
        log.append(what="trace.contested", by=None, now=now, project=row.project_id, subject=subject, detail=detail)
    _move(row, SettlementState.CONTESTED, reason, now)


def _settle(look: _Look, weighed: Weighed, now: dt.datetime) -> None:
    row = look.row
    row.consensus_revision = consensus.keep(
        trace_id=row.trace_id,
        project_id=look.project.pk,
        first_error=weighed.first_error,
        source=ConsensusSource.RATERS,
        confidence=weighed.share,
        n_votes=weighed.n_votes,
        labels=labels_of(look.project, look.readings, weighed.first_error, look.posterior),
        posterior=look.posterior,
        assisted=look.assisted,
        now=now,
        by=None,
    )
    _move(row, SettlementState.SETTLED, weighed.reason, now)


def labels_of(
    project: Project, readings: list[Reading], first_error: int | None, posterior: Posterior | None = None
) -> list[StepLabel]:
    """The step labels that follow from a consensus, from all readings as they stand."""
    ratings = list(_ratings(readings))
    if project.protocol == Protocol.EVERY_STEP:
        return step_labels.of_every_step(ratings)
    votes = [each.report.position for each in readings if not each.report.is_censored]
    sure = None if posterior is None else Sure(posterior.of, posterior.after)
    return step_labels.of_first_error(ratings, first_error=first_error, votes=votes, sure=sure)


def _ratings(readings: list[Reading]) -> Iterator[Rating]:
    of = {(each.assignment_id, each.revision): each.report.position for each in readings}
    rows = Judgment.objects.filter(
        turn__assignment_id__in=[each.assignment_id for each in readings],
        rating__isnull=False,
        turn__step__is_rateable=True,
    ).values_list("turn__assignment_id", "turn__revision", "turn__step__position", "option__position", "rating")
    for assignment_id, revision, step, option, rating in rows:
        if rating is not None and (assignment_id, revision) in of:
            yield Rating(step, option, rating, of[assignment_id, revision])


def readings_of(trace_id: int) -> list[Reading]:
    """The readings of one trace that have a vote."""
    return hearing.with_a_vote(hearing.every([trace_id]))[trace_id]


def _move(row: Settlement, state: SettlementState, reason: str, now: dt.datetime) -> None:
    if (row.state, row.reason) != (state, reason):
        row.state, row.reason, row.changed_at = state, reason, now
