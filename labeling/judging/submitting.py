"""Makes submissions: the immutable revisions of what an assignment ended with."""

import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection, transaction

import statements
from accounts.models import User
from labeling import protocols, quality, queue
from labeling.judging import closing, keeping, meeting, recording, standing, telling
from labeling.judging.errors import Incomplete, JudgingError, OthersStand
from labeling.judging.meeting import Meeting
from labeling.judging.standing import Facts, Standing
from labeling.judging.writes import Batch, WriteIn, checked
from labeling.models import Submission
from labeling.models.assignment import OPEN_STATES, AssignmentState, FinishReason, Population, Purpose
from labeling.quality import scoring

_TOLD = {FinishReason.GIVE_UP: "trace.given_up", FinishReason.BAD_PROBLEM: "problem.reported"}


def submit(
    *,
    assignment_id: int,
    rater_id: int,
    client: str,
    writes: Sequence[WriteIn] = (),
    now: dt.datetime,
    by: User | None,
    note: str = "",
    revision: int | None = None,
) -> Submission:
    """Keep the remaining writes and submit. A second click gives the same submission; `revision`, where the client
    says which one it means, keeps a message that was long on its way from ending a correction begun since.

    Raises Incomplete or OthersStand: then the writes are kept, and nothing is submitted. It commits what it keeps, so
    do not call it inside a transaction that an error would undo."""
    return _finish(checked(assignment_id, rater_id, client, writes), _Asked(None, note, revision, by), now)


def give_up(
    *,
    assignment_id: int,
    rater_id: int,
    client: str,
    writes: Sequence[WriteIn] = (),
    reason: str,
    now: dt.datetime,
    by: User | None,
    revision: int | None = None,
) -> Submission:
    """Submit what there is: the rater cannot go on. No protocol is asked."""
    asked = _Asked(FinishReason.GIVE_UP, reason, revision, by)
    return _finish(checked(assignment_id, rater_id, client, writes), asked, now)


def report_problem(
    *,
    assignment_id: int,
    rater_id: int,
    client: str,
    writes: Sequence[WriteIn] = (),
    reason: str,
    now: dt.datetime,
    by: User | None,
    revision: int | None = None,
) -> Submission:
    """Submit what there is: the problem itself is bad. No protocol is asked."""
    asked = _Asked(FinishReason.BAD_PROBLEM, reason, revision, by)
    return _finish(checked(assignment_id, rater_id, client, writes), asked, now)


class _Asked(NamedTuple):
    """How the rater wants to end."""

    reason: FinishReason | None  # None: as the protocol says
    note: str
    revision: int | None
    by: User | None


def _finish(batch: Batch, asked: _Asked, now: dt.datetime) -> Submission:
    with transaction.atomic():
        recording.hold(batch=batch, now=now, and_trace=True)
        found = standing.read(batch, steps=None)
        met = meeting.meet(found, batch)
        keeping.keep(standing=found, meeting=met, client=batch.client, now=now)
        telling.late_arrival(standing=found, meeting=met, now=now)
        earlier = _earlier(found, asked)
        if earlier is not None:
            return earlier
        fault = _fault(found, met, asked)
        if fault is None:
            return _submit(_after(found, met), asked, now)
    raise fault


def _earlier(found: Standing, asked: _Asked) -> Submission | None:
    """What this message would make has been made already."""
    facts = found.facts
    is_outdated = asked.revision is not None and asked.revision <= facts.submitted_revision
    if not found.is_closed and not is_outdated:
        return None
    return Submission.objects.get(assignment_id=facts.assignment, revision=facts.submitted_revision)


def _fault(found: Standing, met: Meeting, asked: _Asked) -> JudgingError | None:
    """Why this cannot be submitted yet."""
    if met.lost:
        return OthersStand(met.lost)
    rated = _after(found, met).rated()
    if asked.reason is None and protocols.missing(found.facts.protocol, rated):
        return Incomplete(protocols.button(found.facts.protocol, rated))
    return None


def _after(found: Standing, met: Meeting) -> Standing:
    """What stands when the batch has been kept."""
    facts = found.facts._replace(version=found.facts.version + 1) if met.arrivals else found.facts
    turns, judgments = {**found.turns, **met.turns}, {**found.judgments, **met.judgments}
    return Standing(facts, found.steps, turns, judgments, found.history)


def _submit(after: Standing, asked: _Asked, now: dt.datetime) -> Submission:
    facts = after.facts
    reason = asked.reason or protocols.finish_reason(facts.protocol, after.rated())
    closing.close(standing=after, now=now)
    is_late = facts.state not in (*OPEN_STATES, AssignmentState.SUBMITTED)
    counts_as = _counts_as(facts, now) if is_late else None
    submission = _made(after, reason, asked.note, now)
    time = connection.ops.adapt_datetimefield_value(now)
    # A slot that was given back and taken again is held again.
    holds_slot = counts_as != Population.EXTRA if is_late else None
    statements.rows(_SUBMITTED, [time, reason.value, counts_as, holds_slot, facts.assignment])
    detail = {"revision": facts.revision, "finish_reason": reason.value, "was_late": is_late, "counts_as": counts_as}
    telling.tell(what=_TOLD.get(reason, "submission.made"), facts=facts, by=asked.by, now=now, **detail)
    _take_stock(facts, now)
    return submission


def _take_stock(facts: Facts, now: dt.datetime) -> None:
    """What the submission means for others: gold is scored at once, work is counted and looked at soon afterwards."""
    if facts.purpose == Purpose.WORK:
        quality.count(trace_id=facts.trace, now=now)
    elif facts.purpose in scoring.USE_OF:
        quality.meet_gold(assignment_id=facts.assignment, now=now)


def _counts_as(facts: Facts, now: dt.datetime) -> Population:
    """What a submission counts as whose trace had gone back: it has its place where a slot is free, and otherwise is
    one more than was asked for. Nobody waits for one of a withdrawn trace or of a removed rater."""
    if facts.is_removed or facts.is_withdrawn:
        return Population.EXTRA
    return queue.take_slot(assignment_id=facts.assignment, now=now) or Population.EXTRA


def _made(after: Standing, reason: FinishReason, note: str, now: dt.datetime) -> Submission:
    return Submission.objects.create(
        project_id=after.facts.project,
        assignment_id=after.facts.assignment,
        revision=after.facts.revision,
        submitted_at=now,
        finish_reason=reason.value,
        finish_note=note,
        total_ms=sum(turn.active_ms or 0 for turn in after.turns.values()),
        **_quality(after.facts),
    )


def _quality(facts: Facts) -> dict[str, bool]:
    return {"is_quality_control": facts.purpose == "gold", "is_screening": facts.purpose == "screening"}


# The time of the first submission stays: corrections have their own in their submissions.
_SUBMITTED = """
UPDATE labeling_assignment SET state = 'submitted', submitted_at = COALESCE(submitted_at, %s), finish_reason = %s,
  submitted_revision = revision, reopened_at = NULL, version = version + 1,
  population = COALESCE(%s, population), holds_slot = COALESCE(%s, holds_slot)
WHERE id = %s"""
