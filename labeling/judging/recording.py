"""Records what clients send, as it is made."""

import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple

from django.db import transaction

import statements
from labeling.judging import keeping, meeting, standing, telling
from labeling.judging.errors import AssignmentUnknown
from labeling.judging.meeting import Lost, Meeting
from labeling.judging.standing import Standing
from labeling.judging.writes import Batch, WriteIn, checked
from labeling.models.assignment import OPEN_STATES, AssignmentState


class Recorded(NamedTuple):
    """What a batch came to. Every write of it is in the history now."""

    version: int
    state: AssignmentState
    revision: int
    is_late: bool  # the trace is submitted: what is new was kept, not applied
    sequences: tuple[int, ...]  # all of the batch: the client need not send them again
    lost: tuple[Lost, ...]  # those that do not stand, with what does
    lease_ends_at: dt.datetime | None  # None where it is not in the rater's hands


def record(*, assignment_id: int, rater_id: int, client: str, writes: Sequence[WriteIn], now: dt.datetime) -> Recorded:
    """Keep a batch of one client. Sent again it changes nothing and is answered alike. Raises WriteRefused, and keeps
    nothing, when a write is about a place that the trace does not have."""
    batch = checked(assignment_id, rater_id, client, writes)
    recorded = _record_unlocked(batch, now)
    if recorded is not None:
        return recorded
    with transaction.atomic():
        hold(batch=batch, now=now)
        return _record_locked(batch, now)


def hold(*, batch: Batch, now: dt.datetime, and_trace: bool = False) -> None:
    """Lock the assignment to the end of the transaction. A submit also locks the trace: it counts what others have
    submitted."""
    held = _HOLD_BOTH if and_trace else _HOLD
    if not statements.rows(held, {"assignment": batch.assignment_id, "rater": batch.rater_id}):
        raise AssignmentUnknown


def _record_unlocked(batch: Batch, now: dt.datetime) -> Recorded | None:
    """Two statements without a transaction of their own. None where that is not enough: the assignment moved between
    the two, or there is something to do besides."""
    found = _read(batch)
    if found.facts.is_removed or found.facts.is_withdrawn:
        return None
    met = meeting.meet(found, batch, now=now)
    version = keeping.keep(standing=found, meeting=met, client=batch.client, now=now)
    return None if version is None else _recorded(found, met, batch, version, now)


def _record_locked(batch: Batch, now: dt.datetime) -> Recorded:
    found = _read(batch)
    met = meeting.meet(found, batch, now=now)
    version = keeping.keep(standing=found, meeting=met, client=batch.client, now=now)
    if version is None:
        raise RuntimeError(f"assignment {batch.assignment_id} moved while it was locked")
    telling.late_arrival(standing=found, meeting=met, now=now)
    return _recorded(found, met, batch, version, now)


def _read(batch: Batch) -> Standing:
    return standing.read(batch, steps={write.step for write in batch.writes})


def _recorded(found: Standing, met: Meeting, batch: Batch, version: int, now: dt.datetime) -> Recorded:
    is_in_hand = found.facts.state in OPEN_STATES
    renewed = version > found.facts.version
    ends_at = keeping.lease_end(found, now) if renewed else found.facts.lease_ends_at
    return Recorded(
        version=version,
        state=AssignmentState.OPENED if is_in_hand else AssignmentState(found.facts.state),
        revision=found.facts.revision,
        is_late=found.is_closed and bool(batch.writes),
        sequences=tuple(write.sequence for write in batch.writes),
        lost=met.lost,
        lease_ends_at=ends_at if is_in_hand else None,
    )


_HOLD_BOTH = """
SELECT 1 FROM labeling_assignment a JOIN labeling_trace t ON t.id = a.trace_id
WHERE a.id = %(assignment)s AND a.rater_id = %(rater)s FOR NO KEY UPDATE OF a, t"""
_HOLD = "SELECT 1 FROM labeling_assignment WHERE id = %(assignment)s AND rater_id = %(rater)s FOR NO KEY UPDATE"
