"""Hands a rater the next trace, or says why there is none."""

import datetime as dt
import random
from contextlib import nullcontext
from typing import NamedTuple

from django.db import IntegrityError, connection, transaction

import rawsql
from labeling.models import Assignment, Lane, LaneCursor, Rater
from labeling.models.assignment import AssignmentState
from labeling.models.queue import SamplingSource
from labeling.queue import eligibility, leases, lock_retries
from labeling.queue.lanes import HOLD_DURATION, exhausted_key, renewal_key

# Take one slot for a rater, by the statement in `claim.sql`.


CLAIM = rawsql.load_sql(__file__, "claim.sql")
_PART = rawsql.sections(CLAIM)
_LOOK = f"""{_PART["lanes"]}{_PART["work"].strip().removesuffix(",")}
SELECT 1 FROM work WHERE NOT EXISTS (SELECT 1 FROM lanes WHERE is_held)"""  # noqa: S608  made of constants
# Constraints that reject the statement when two claims of one rater meet.
_TWO_CLAIMS_MET = ("one_held_assignment_per_rater", "an_open_assignment_has_a_lease_and_a_slot")


class Taken(NamedTuple):
    """The row that `claim.sql` returns for a slot that was taken."""

    assignment_id: int
    trace_id: int
    purpose: str
    arm: str
    state: str
    lease_ends_at: dt.datetime
    draw_id: int | None
    came_up_empty: list[int]  # lanes tried before, where the rater's mark lags behind


def take_slot_for_rater(
    *, rater_id: int, now: dt.datetime, opened: bool, chance: float, from_top: bool = False
) -> Taken | None:
    """Take a slot for the rater. None if there is none, or they already hold one, or they may not be given any."""
    asked = parameters(rater_id=rater_id, now=now, opened=opened, chance=chance, from_top=from_top)
    try:
        # Outside a transaction the statement is its own; inside one, its failure may not end the whole.
        with transaction.atomic() if connection.in_atomic_block else nullcontext():
            found = rawsql.fetch_rows(CLAIM, asked)
    except IntegrityError as error:
        if not any(name in str(error) for name in _TWO_CLAIMS_MET):
            raise
        return None
    if not found:
        return None
    taken = Taken(*found[0])
    if taken.came_up_empty:
        _move_cursors(rater_id, taken.came_up_empty, now)
    return taken


def is_anything_left(*, rater_id: int, now: dt.datetime, chance: float) -> bool:
    """Look from the top without locks: entries that another claim has just locked count, and `take` skipped them."""
    asked = parameters(rater_id=rater_id, now=now, opened=False, chance=chance, from_top=True)
    return bool(rawsql.fetch_rows(_LOOK, asked))


def parameters(
    *, rater_id: int, now: dt.datetime, opened: bool, chance: float, from_top: bool = False
) -> dict[str, object]:
    """Return the parameters of `CLAIM`."""
    return {
        "rater_id": rater_id,
        "chance": chance,
        "from_top": from_top,
        "arrivals_until": renewal_key(now),
        "opened": opened,
        "now": now,
        "held_for": HOLD_DURATION,
    }


def _move_cursors(rater_id: int, lane_ids: list[int], now: dt.datetime) -> None:
    """Record that these lanes came up empty, so that the next claim does not read down them again."""
    arms = Lane.objects.filter(pk__in=lane_ids).values_list("pk", "arm")
    LaneCursor.objects.bulk_create(
        [
            LaneCursor(rater_id=rater_id, lane_id=pk, key=exhausted_key(arm, now), read_at=now)
            for pk, arm in sorted(arms)
        ],
        update_conflicts=True,
        unique_fields=["rater", "lane"],
        update_fields=["key", "read_at"],
    )


class Claim(NamedTuple):
    """What a rater has been handed."""

    assignment_id: int
    trace_id: int
    purpose: str
    arm: str
    state: str
    lease_ends_at: dt.datetime
    draw_id: int | None
    is_new: bool


def claim_trace(*, rater_id: int, now: dt.datetime, opened: bool = False, chance: float | None = None) -> Claim:
    """The trace that the rater holds, otherwise the next one; opened at once if asked. Raises a QueueRefusal.

    `chance`, between 0 and 1, decides on the arm.
    """
    chance = random.random() if chance is None else chance  # noqa: S311  a choice of arm, not a secret
    taken = take_slot_for_rater(rater_id=rater_id, now=now, opened=opened, chance=chance)
    return _new_claim(taken) if taken else _claim_slowly(rater_id, now, opened, chance)


def _new_claim(taken: Taken) -> Claim:
    return Claim(*taken[:-1], is_new=True)


def _claim_slowly(rater_id: int, now: dt.datetime, opened: bool, chance: float) -> Claim:
    """Nothing lies below where the rater stands, or he holds one, or he may not be handed anything."""
    rater = Rater.objects.select_related("project").get(pk=rater_id)
    eligibility.check_eligibility(rater, rater.project)
    held = _held_claim(rater, now, opened)
    if held is not None:
        return held
    taken = _take_from_top(rater_id, now, opened, chance)
    if taken is None and leases.lapse_expired_leases(now=now, project_id=rater.project_id):
        taken = _take_from_top(rater_id, now, opened, chance)
    # Another request of the same rater may have been quicker.
    found = _new_claim(taken) if taken else _held_claim(rater, now, opened)
    if found is None:
        raise eligibility.explain_nothing_left([rater_id])[rater_id]
    return found


def _held_claim(rater: Rater, now: dt.datetime, opened: bool) -> Claim | None:
    held = Assignment.objects.select_related("lane").filter(rater=rater, state=AssignmentState.HELD).first()
    if held is None:
        return None
    if opened:
        held = leases.open_assignment(assignment_id=held.pk, rater_id=rater.pk, now=now)
    else:
        held.lease_ends_at = now + HOLD_DURATION
        Assignment.objects.held().filter(pk=held.pk).update(lease_ends_at=held.lease_ends_at)
    return _existing_claim(held)


def _existing_claim(held: Assignment) -> Claim:
    arm = held.lane.arm if held.lane is not None else SamplingSource.TOP_UP
    if held.lease_ends_at is None:
        raise eligibility.lease_lost_error()
    return Claim(held.pk, held.trace_id, held.purpose, arm, held.state, held.lease_ends_at, held.draw_id, is_new=False)


def _take_from_top(rater_id: int, now: dt.datetime, opened: bool, chance: float) -> Taken | None:
    """None when nothing is left. An entry that another claim has locked is free afterwards, or gone: try again."""
    for _ in lock_retries.retry_attempts():
        taken = take_slot_for_rater(rater_id=rater_id, now=now, opened=opened, chance=chance, from_top=True)
        if taken or not is_anything_left(rater_id=rater_id, now=now, chance=chance):
            return taken
    raise eligibility.busy_error()
