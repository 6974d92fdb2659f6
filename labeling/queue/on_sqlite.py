"""Taking a slot on SQLite: looked up without a lock, then written in a transaction of two statements. Whoever holds
the write lock keeps everybody else from writing.

It is looked up lane by lane, since the first or second has something: how far the rater has come in all the others need
not be found out."""

import datetime as dt
import itertools
from typing import NamedTuple

from django.db import IntegrityError, transaction

import statements
from labeling.models.assignment import AssignmentState
from labeling.models.queue import Arm
from labeling.queue.lanes import ARM, ARRIVALS, ASKED, BOTTOM, HELD_FOR, MAKE, NEXT, STANDS, TWO_CLAIMS_MET, Taken


class _Lane(NamedTuple):
    """A lane that may be served now."""

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
    from_top: bool
    arrivals_until: int

    def lags(self, key: int) -> bool:
        """Whether a rater who has come to this key has a mark that says so too late."""
        return key > (self.arrivals_until if self.arm in ARRIVALS else BOTTOM)


class _Entry(NamedTuple):
    """The next one for the rater."""

    entry_id: int
    trace_id: int
    key: int
    draw_id: int | None


_ASKED_OF = ("lane_id", "key", "trace_id", "rater_id", "purpose", "attempt")


class _Found(NamedTuple):
    lane: _Lane
    entry: _Entry
    came_up_empty: list[int]


_LANES = f"""
WITH {ASKED},
lanes AS (
    SELECT s.*, {ARM} FROM somebody s JOIN labeling_lane l ON l.project_id = s.project_id AND l.closed_at IS NULL
    WHERE NOT EXISTS (SELECT 1 FROM labeling_assignment a WHERE a.rater_id = s.rater_id AND a.state = 'held'))
SELECT {", ".join(_Lane._fields)} FROM lanes WHERE place IS NOT NULL ORDER BY place, generation DESC, lane_id
"""  # noqa: S608  made of constants
_SLOT = "UPDATE labeling_queueentry SET slots_left = slots_left - 1 WHERE id = %s AND is_open RETURNING id"
_SEARCH = NEXT.replace("e.id AS entry_id, e.trace_id, e.key, e.draw_id", "e.id")
_NEXT = f"""
WITH s AS (SELECT %s AS rater_id, %s AS lane_id, %s AS purpose, %s AS attempt, %s AS from_top),
stands AS (
    SELECT s.*, {STANDS} FROM s
    LEFT JOIN labeling_queuereader m ON m.rater_id = s.rater_id AND m.lane_id = s.lane_id
    LEFT JOIN labeling_assignment n ON n.id = (
        SELECT a.id FROM labeling_assignment a WHERE a.rater_id = s.rater_id AND a.lane_id = s.lane_id
        ORDER BY a.held_at DESC, a.id DESC LIMIT 1))
SELECT w.key, f.id, f.trace_id, f.key, f.draw_id FROM stands w
LEFT JOIN labeling_queueentry f ON f.id = ({_SEARCH.format(**{name: f"w.{name}" for name in _ASKED_OF})})
"""  # noqa: S608  made of constants
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
    """Gold is handed out if some work follows that might have been."""
    gold, came_up_empty = None, list[int]()
    for lane in itertools.starmap(_Lane, statements.rows(_LANES, parameters)):
        of_lane = (lane.rater_id, lane.lane_id, lane.purpose, lane.attempt, lane.from_top)
        ((key, *entry),) = statements.rows(_NEXT, of_lane)
        if entry[0] is not None and lane.arm == Arm.GOLD:
            gold = _Found(lane, _Entry(*entry), came_up_empty)
        elif entry[0] is not None:
            return gold or _Found(lane, _Entry(*entry), came_up_empty)
        elif lane.lags(key):
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
