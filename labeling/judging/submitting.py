"""Makes submissions: the immutable revisions of what an assignment ended with."""

import datetime as dt
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from django.db import transaction

import statements
from accounts.models import User
from labeling import admission, protocols, quality, queue
from labeling.judging import closing, keeping, meeting, recording, requesting, standing, telling
from labeling.judging.errors import Incomplete, JudgingError, OthersStand
from labeling.judging.meeting import Meeting
from labeling.judging.standing import Facts, Standing
from labeling.judging.writes import Batch, WriteIn, checked, kept_reason
from labeling.models import Submission
from labeling.models.assignment import OPEN_STATES, AssignmentState, FinishReason, Population, Purpose
from labeling.quality import scoring

_SUBMIT = statements.load_sql(__file__, "submit.sql")
_TOLD = {FinishReason.GIVE_UP: "trace.given_up", FinishReason.BAD_PROBLEM: "problem.reported"}


def submit(
    *,
    assignment_id: int,
    rater_id: int,
    client: str,
    writes: Sequence[WriteIn] = (),
    now: dt.datetime,
    by: User | None,
    reason: str = "",
    revision: int | None = None,
    ending: FinishReason | None = None,
    active_ms: int = 0,
) -> Submission:
    """Keep the remaining writes and submit: as the protocol says, or with an ending of the rater's own, which asks no
    protocol. A second click gives the same submission; `revision`, where the client says which one it means, keeps a
    message that was long on its way from ending a correction begun since. `active_ms` came after the last
    write.

    Raises Incomplete or OthersStand: then the writes are kept, and nothing is submitted. It commits what it keeps, so
    do not call it inside a transaction that an error would undo."""
    batch, asked = (
        checked(assignment_id, rater_id, client, writes),
        _Asked(ending, kept_reason(reason), revision, by, max(0, active_ms)),
    )
    return _finish_unlocked(batch, asked, now) or _finish_locked(batch, asked, now)


# The rater cannot go on; the problem itself is bad. What there is, is submitted.
give_up = partial(submit, ending=FinishReason.GIVE_UP)
report_problem = partial(submit, ending=FinishReason.BAD_PROBLEM)


class _Asked(NamedTuple):
    """How the rater wants to end."""

    ending: FinishReason | None  # None: as the protocol says
    note: str
    revision: int | None
    by: User | None
    active_ms: int


def _finish_unlocked(batch: Batch, asked: _Asked, now: dt.datetime) -> Submission | None:
    """Read first, and locked by the statement that writes, if all is still as it was read. None where it is not, or
    where there is anything to do besides; then nothing was written."""
    found = standing.read(batch, steps=None)
    met = meeting.meet(found, batch, now=now)
    if not _is_plain(found, asked) or _fault(found, met, asked):
        return None
    with transaction.atomic():
        if met.arrivals and keeping.keep(standing=found, meeting=met, client=batch.client, now=now) is None:
            return None
        return _submit(_after(found, met), asked, now)


def _is_plain(found: Standing, asked: _Asked) -> bool:
    """In the hands of a rater who belongs here, on a trace that is read, and no message of long ago."""
    facts = found.facts
    is_at_work = facts.state == AssignmentState.OPENED or facts.is_reopened
    return is_at_work and not (facts.is_removed or facts.is_withdrawn or _is_outdated(facts, asked))


def _finish_locked(batch: Batch, asked: _Asked, now: dt.datetime) -> Submission:
    with transaction.atomic():
        recording.hold(batch=batch, now=now, and_trace=True)
        found = standing.read(batch, steps=None)
        met = meeting.meet(found, batch, now=now)
        keeping.keep(standing=found, meeting=met, client=batch.client, now=now)
        telling.late_arrival(standing=found, meeting=met, now=now)
        earlier = _earlier(found, asked)
        if earlier is not None:
            return earlier
        fault = _fault(found, met, asked)
        if fault is None:
            made = _submit(_after(found, met), asked, now)
            if made is None:
                raise RuntimeError(f"assignment {batch.assignment_id} moved while it was locked")
            return made
    raise fault


def _earlier(found: Standing, asked: _Asked) -> Submission | None:
    """What this message would make has been made already."""
    facts = found.facts
    if not found.is_closed and not _is_outdated(facts, asked):
        return None
    return Submission.objects.get(assignment_id=facts.assignment, revision=facts.submitted_revision)


def _is_outdated(facts: Facts, asked: _Asked) -> bool:
    return asked.revision is not None and asked.revision <= facts.submitted_revision


def _fault(found: Standing, met: Meeting, asked: _Asked) -> JudgingError | None:
    """Why this cannot be submitted yet."""
    if met.lost:
        return OthersStand(met.lost)
    rated = _after(found, met).rated()
    if asked.ending is None and protocols.missing(found.facts.protocol, rated):
        return Incomplete(protocols.button(found.facts.protocol, rated))
    return None


def _after(found: Standing, met: Meeting) -> Standing:
    """What stands when the batch has been kept."""
    facts = found.facts
    if met.arrivals or facts.state == AssignmentState.HELD:
        state = AssignmentState.OPENED if facts.state == AssignmentState.HELD else facts.state
        facts = facts._replace(version=facts.version + 1, state=state)
    turns, judgments = {**found.turns, **met.turns}, {**found.judgments, **met.judgments}
    return Standing(facts, found.steps, turns, judgments, found.history)


def _submit(after: Standing, asked: _Asked, now: dt.datetime) -> Submission | None:
    """None, and nothing written, where the assignment is not as it was read."""
    facts = after.facts
    ending = asked.ending or protocols.finish_reason(facts.protocol, after.rated())
    is_late = facts.state not in (*OPEN_STATES, AssignmentState.SUBMITTED)
    counts_as = _counts_as(facts, now) if is_late else None
    made = _made(after, ending, asked, now)
    if not _put_down(made, facts, counts_as, now):
        return None
    closing.close(standing=after, now=now)
    detail = {"revision": facts.revision, "finish_reason": ending.value, "was_late": is_late, "counts_as": counts_as}
    telling.tell(what=_TOLD.get(ending, "submission.made"), facts=facts, by=asked.by, now=now, **detail)
    _take_stock(facts, asked.by, now)
    if facts.is_reopened:
        requesting.answered(assignment_id=facts.assignment, by=asked.by, now=now)
    return made


def _take_stock(facts: Facts, by: User | None, now: dt.datetime) -> None:
    """What the submission means for others: gold is scored at once, work is counted and looked at soon afterwards. On
    the way in it decides where its rater goes on."""
    if facts.purpose == Purpose.WORK:
        quality.count(trace_id=facts.trace, now=now)
    elif facts.purpose in scoring.USE_OF:
        quality.meet_gold(assignment_id=facts.assignment, now=now)
    if facts.purpose in (Purpose.TRAINING, Purpose.SCREENING):
        admission.submitted(assignment_id=facts.assignment, by=by, now=now)


def _counts_as(facts: Facts, now: dt.datetime) -> Population:
    """What a submission counts as whose trace had gone back: it has its place where a slot is free, and otherwise is
    one more than was asked for. Nobody waits for one of a withdrawn trace or of a removed rater."""
    if facts.is_removed or facts.is_withdrawn:
        return Population.EXTRA
    return queue.take_slot(assignment_id=facts.assignment, now=now) or Population.EXTRA


def _made(after: Standing, ending: FinishReason, asked: _Asked, now: dt.datetime) -> Submission:
    facts = after.facts
    spent = sum(turn.active_ms or 0 for turn in after.turns.values()) + asked.active_ms
    return Submission(
        project_id=facts.project,
        assignment_id=facts.assignment,
        revision=facts.revision,
        submitted_at=now,
        finish_reason=ending.value,
        finish_note=asked.note,
        total_ms=min(facts.most_ms(now), spent),
        is_quality_control=facts.purpose == Purpose.GOLD,
        is_screening=facts.purpose == Purpose.SCREENING,
    )


def _put_down(made: Submission, facts: Facts, counts_as: Population | None, now: dt.datetime) -> bool:
    """Write the submission and its assignment. Return False, and write neither, if the assignment is not as it was
    read."""
    found = statements.rows(
        _SUBMIT,
        {
            "assignment": facts.assignment,
            "state": facts.state,
            "version": facts.version,
            "revision": facts.revision,
            "submitted_revision": facts.submitted_revision,
            "is_reopened": facts.is_reopened,
            "now": now,
            "finish_reason": made.finish_reason,
            "finish_note": made.finish_note,
            "total_ms": made.total_ms,
            "is_quality_control": made.is_quality_control,
            "is_screening": made.is_screening,
            "population": counts_as,
            # A slot that was given back and taken again is held again.
            "holds_slot": None if counts_as is None else counts_as != Population.EXTRA,
        },
    )
    for (pk,) in found:
        made.pk, made._state.adding = pk, False
    return bool(found)
