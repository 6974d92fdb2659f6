"""Taking a slot on SQLite: looked up without a lock, then written in a transaction of two statements. Whoever holds
the write lock keeps everybody else from writing."""

import datetime as dt
from typing import NamedTuple

from django.db import IntegrityError, transaction

import statements
from labeling.models.assignment import AssignmentState
from labeling.queue.lanes import ARRIVALS, BOTTOM, HELD_FOR, LANES, MAKE, NEXT, TWO_CLAIMS_MET, Taken


class _Lane(NamedTuple):
    """A lane as LANES tells it."""

    lane_id: int
    arm: str
    rater_id: int
    project_id: int
    lease_seconds: int
    guideline_id: int | None
    shows_reference_answer: bool
    shows_final_verdict: bool
    purpose: str
    attempt: int
    population: str
    key: int
    trace_id: int
    place: int | None
    arrivals_until: int

    @property
    def lags(self) -> bool:
        return self.key > (self.arrivals_until if self.arm in ARRIVALS else BOTTOM)


class _Entry(NamedTuple):
    """An entry as NEXT tells it."""

    entry_id: int
    trace_id: int
    key: int
    draw_id: int | None


class _Found(NamedTuple):
    lane: _Lane
    entry: _Entry
    came_up_empty: list[int]


_LANES = f"WITH {LANES} SELECT {', '.join(_Lane._fields)} FROM lanes"  # noqa: S608  made of constants
_HELD = "SELECT 1 FROM labeling_assignment WHERE rater_id = %s AND state = 'held'"
_SLOT = "UPDATE labeling_queueentry SET slots_left = slots_left - 1 WHERE id = %s AND is_open RETURNING id"
_NEXT = NEXT.format(lane_id="%s", key="%s", trace_id="%s", rater_id="%s", purpose="%s", attempt="%s")
_MAKE = MAKE.format(values=f"VALUES ({', '.join(['%s'] * 19)}, false, 1, 0, 0)")


def take(*, parameters: list[object], now: dt.datetime, opened: bool) -> Taken | None:
    found = _find(parameters)
    if found is None:
        return None
    try:
        with transaction.atomic():
            if not _take_slot(found.entry):
                # Somebody was quicker. Now nobody else can be.
                found = _find(parameters)
                if found is None or not _take_slot(found.entry):
                    return None
            return _make(found, now, opened)
    except IntegrityError as error:
        if not any(name in str(error) for name in TWO_CLAIMS_MET):
            raise
        return None


def is_anything_left(parameters: list[object]) -> bool:
    return _find(parameters) is not None


def _find(parameters: list[object]) -> _Found | None:
    lanes = [_Lane(*row) for row in statements.rows(_LANES, parameters)]
    if not lanes or statements.rows(_HELD, [lanes[0].rater_id]):
        return None
    came_up_empty: list[int] = []
    for lane in (lane for lane in lanes if lane.place is not None):
        where = [lane.lane_id, lane.key, lane.trace_id, lane.rater_id, lane.purpose, lane.purpose, lane.attempt]
        for row in statements.rows(_NEXT, where):
            return _Found(lane, _Entry(*row), came_up_empty)
        if lane.lags:
            came_up_empty.append(lane.lane_id)
    return None


def _take_slot(entry: _Entry) -> bool:
    """The slot may have gone since it was looked up: the condition stands in the statement that writes."""
    return bool(statements.rows(_SLOT, [entry.entry_id]))


def _make(found: _Found, now: dt.datetime, opened: bool) -> Taken:
    lane, entry = found.lane, found.entry
    state = (AssignmentState.OPENED if opened else AssignmentState.HELD).value
    lease_ends_at = now + (dt.timedelta(seconds=lane.lease_seconds) if opened else HELD_FOR)
    held_at = statements.moment(now)
    seen = (lane.guideline_id, lane.shows_reference_answer, lane.shows_final_verdict) if opened else (None, None, None)
    ((assignment_id,),) = statements.rows(
        _MAKE + " RETURNING id",
        [
            *(lane.project_id, lane.rater_id, entry.trace_id, lane.lane_id, entry.key, entry.draw_id),
            *(lane.purpose, lane.attempt, "here", lane.population, state, True),
            *(held_at, held_at if opened else None, statements.moment(lease_ends_at), "", *seen),
        ],
    )
    return Taken(
        *(assignment_id, entry.trace_id, lane.purpose, lane.arm, state, lease_ends_at, entry.draw_id),
        found.came_up_empty,
    )
