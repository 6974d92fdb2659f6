"""Hands a rater the next trace, or says why there is none."""

import datetime as dt
import random
from typing import NamedTuple

from labeling.models import Assignment, Rater
from labeling.models.assignment import AssignmentState
from labeling.models.queue import Arm
from labeling.queue import emptiness, leases, patience, refusals, taking
from labeling.queue.lanes import HELD_FOR
from labeling.queue.taking import Taken


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


def claim(*, rater_id: int, now: dt.datetime, opened: bool = False, chance: float | None = None) -> Claim:
    """The trace that the rater holds, otherwise the next one; opened at once if asked. Raises a QueueRefusal.

    `chance`, between 0 and 1, decides on the arm.
    """
    chance = random.random() if chance is None else chance  # noqa: S311  a choice of arm, not a secret
    taken = taking.take(rater_id=rater_id, now=now, opened=opened, chance=chance)
    return _new(taken) if taken else _claim_with_care(rater_id, now, opened, chance)


def _new(taken: Taken) -> Claim:
    return Claim(*taken[:-1], is_new=True)


def _claim_with_care(rater_id: int, now: dt.datetime, opened: bool, chance: float) -> Claim:
    """Nothing lies below where the rater stands, or he holds one, or he may not be handed anything."""
    rater = Rater.objects.select_related("project").get(pk=rater_id)
    refusals.check(rater, rater.project)
    held = _held(rater, now, opened)
    if held is not None:
        return held
    taken = _take_from_top(rater_id, now, opened, chance)
    if taken is None and leases.lapse_due(now=now, project_id=rater.project_id):
        taken = _take_from_top(rater_id, now, opened, chance)
    # Another request of the same rater may have been quicker.
    found = _new(taken) if taken else _held(rater, now, opened)
    if found is None:
        raise emptiness.why_nothing([rater_id])[rater_id]
    return found


def _held(rater: Rater, now: dt.datetime, opened: bool) -> Claim | None:
    held = Assignment.objects.select_related("lane").filter(rater=rater, state=AssignmentState.HELD).first()
    if held is None:
        return None
    if opened:
        held = leases.open_held(assignment_id=held.pk, rater_id=rater.pk, now=now)
    else:
        held.lease_ends_at = now + HELD_FOR
        Assignment.objects.held().filter(pk=held.pk).update(lease_ends_at=held.lease_ends_at)
    return _known(held)


def _known(held: Assignment) -> Claim:
    arm = held.lane.arm if held.lane is not None else Arm.TOP_UP
    if held.lease_ends_at is None:
        raise refusals.lease_lost()
    return Claim(held.pk, held.trace_id, held.purpose, arm, held.state, held.lease_ends_at, held.draw_id, is_new=False)


def _take_from_top(rater_id: int, now: dt.datetime, opened: bool, chance: float) -> Taken | None:
    """None when nothing is left. An entry that another claim has locked is free afterwards, or gone: try again."""
    for _ in patience.tries():
        taken = taking.take(rater_id=rater_id, now=now, opened=opened, chance=chance, from_top=True)
        if taken or not taking.is_anything_left(rater_id=rater_id, now=now, chance=chance):
            return taken
    raise refusals.too_busy()
