"""Give a rater the next trace, or raise the reason why there is none. `claim.sql` makes the decision."""

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
from labeling.queue.lanes import exhausted_key, renewal_key
from labeling.queue.leases import HOLD_DURATION

CLAIM_SQL = rawsql.load_sql(__file__, "claim.sql")
_SECTIONS = rawsql.sections(CLAIM_SQL)
_IS_WORK_LEFT = f"""{_SECTIONS["lanes"]}{_SECTIONS["work"].strip().removesuffix(",")}
SELECT 1 FROM work WHERE NOT EXISTS (SELECT 1 FROM lanes WHERE is_held)"""  # noqa: S608  made of constants
# Constraints that reject the statement when one rater makes two claims at the same time.
_CONCURRENT_CLAIM = ("one_held_assignment_per_rater", "an_open_assignment_has_a_lease_and_a_slot")


class Claim(NamedTuple):
    """The assignment that a rater gets."""

    assignment_id: int
    trace_id: int
    purpose: str
    arm: str
    state: str
    lease_ends_at: dt.datetime
    draw_id: int | None
    is_new: bool


def claim_trace(*, rater_id: int, now: dt.datetime, opened: bool = False, chance: float | None = None) -> Claim:
    """Return the trace that the rater holds, otherwise the next one. Raises a QueueRefusal.

    `chance`, between 0 and 1, decides on the sampling source.
    """
    chance = random.random() if chance is None else chance  # noqa: S311  a choice of lane, not a secret
    claim = take_slot_for_rater(rater_id=rater_id, now=now, opened=opened, chance=chance)
    return claim or _claim_slowly(rater_id, now, opened, chance)


def take_slot_for_rater(
    *, rater_id: int, now: dt.datetime, opened: bool, chance: float, from_top: bool = False
) -> Claim | None:
    """Take a slot. Return None if there is none, or the rater already holds a trace, or is not eligible."""
    parameters = claim_parameters(rater_id=rater_id, now=now, opened=opened, chance=chance, from_top=from_top)
    try:
        # Inside a transaction a savepoint, so that a rejected statement does not end the transaction.
        with transaction.atomic() if connection.in_atomic_block else nullcontext():
            rows = rawsql.fetch_rows(CLAIM_SQL, parameters)
    except IntegrityError as error:
        if not any(name in str(error) for name in _CONCURRENT_CLAIM):
            raise
        return None
    if not rows:
        return None
    *columns, empty_lanes = rows[0]
    if empty_lanes:
        _move_cursors(rater_id, empty_lanes, now)
    return Claim._make((*columns, True))


def is_work_left(*, rater_id: int, now: dt.datetime, chance: float) -> bool:
    """Search from the top without locks, so that entries count which other claims have locked at this moment."""
    parameters = claim_parameters(rater_id=rater_id, now=now, opened=False, chance=chance, from_top=True)
    return bool(rawsql.fetch_rows(_IS_WORK_LEFT, parameters))


def claim_parameters(
    *, rater_id: int, now: dt.datetime, opened: bool, chance: float, from_top: bool = False
) -> dict[str, object]:
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
    """Record that these lanes were empty, so that the next claim does not search them again."""
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


def _claim_slowly(rater_id: int, now: dt.datetime, opened: bool, chance: float) -> Claim:
    """Find out why the fast statement took nothing, and try everything else."""
    rater = Rater.objects.select_related("project").get(pk=rater_id)
    eligibility.check_eligibility(rater, rater.project)
    held = _held_claim(rater, now, opened)
    if held is not None:
        return held
    claim = _take_from_top(rater_id, now, opened, chance)
    if claim is None and leases.lapse_expired_leases(now=now, project_id=rater.project_id):
        claim = _take_from_top(rater_id, now, opened, chance)
    # Another request of the same rater may have been faster.
    claim = claim or _held_claim(rater, now, opened)
    if claim is None:
        raise eligibility.explain_nothing_left([rater_id])[rater_id]
    return claim


def _held_claim(rater: Rater, now: dt.datetime, opened: bool) -> Claim | None:
    held = Assignment.objects.select_related("lane").filter(rater=rater, state=AssignmentState.HELD).first()
    if held is None:
        return None
    if opened:
        held = leases.open_assignment(assignment_id=held.pk, rater_id=rater.pk, now=now)
    else:
        held.lease_ends_at = now + HOLD_DURATION
        Assignment.objects.held().filter(pk=held.pk).update(lease_ends_at=held.lease_ends_at)
    if held.lease_ends_at is None:
        raise eligibility.lease_lost_error()
    arm = held.lane.arm if held.lane is not None else SamplingSource.TOP_UP
    return Claim(held.pk, held.trace_id, held.purpose, arm, held.state, held.lease_ends_at, held.draw_id, is_new=False)


def _take_from_top(rater_id: int, now: dt.datetime, opened: bool, chance: float) -> Claim | None:
    """Return None if nothing is left. An entry that another claim has locked may be free again soon: try repeatedly."""
    for _ in lock_retries.retry_attempts():
        claim = take_slot_for_rater(rater_id=rater_id, now=now, opened=opened, chance=chance, from_top=True)
        if claim or not is_work_left(rater_id=rater_id, now=now, chance=chance):
            return claim
    raise eligibility.busy_error()
