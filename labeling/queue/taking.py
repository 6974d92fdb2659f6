"""Take one slot for a rater, by the statement in `claim.sql`."""

import datetime as dt
from contextlib import nullcontext
from typing import NamedTuple

from django.db import IntegrityError, connection, transaction

import statements
from labeling.models import Lane, QueueReader
from labeling.queue.lanes import HELD_FOR, floor, renewal_key

CLAIM = statements.load_sql(__file__, "claim.sql")
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


class Attempt(NamedTuple):
    """The outcome of one attempt. `others_hold_some` is meaningful only for an attempt from the top."""

    taken: Taken | None
    others_hold_some: bool = False


def take(*, rater_id: int, now: dt.datetime, opened: bool, chance: float, from_top: bool = False) -> Attempt:
    """Take a slot for the rater, unless there is none, or they already hold one, or they may not be given any."""
    asked = parameters(rater_id=rater_id, now=now, opened=opened, chance=chance, from_top=from_top)
    try:
        # Outside a transaction the statement is its own; inside one, its failure may not end the whole.
        with transaction.atomic() if connection.in_atomic_block else nullcontext():
            found = statements.rows(CLAIM, asked)
    except IntegrityError as error:
        if not any(name in str(error) for name in _TWO_CLAIMS_MET):
            raise
        return Attempt(None, others_hold_some=True)  # the next attempt sees what the other claim made
    ((*row, others_hold_some),) = found
    if row[0] is None:
        return Attempt(None, others_hold_some)
    taken = Taken(*row)
    if taken.came_up_empty:
        _mark(rater_id, taken.came_up_empty, now)
    return Attempt(taken)


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
        "held_for": HELD_FOR,
    }


def _mark(rater_id: int, lane_ids: list[int], now: dt.datetime) -> None:
    """Record that these lanes came up empty, so that the next claim does not read down them again."""
    arms = Lane.objects.filter(pk__in=lane_ids).values_list("pk", "arm")
    QueueReader.objects.bulk_create(
        [QueueReader(rater_id=rater_id, lane_id=pk, key=floor(arm, now), read_at=now) for pk, arm in sorted(arms)],
        update_conflicts=True,
        unique_fields=["rater", "lane"],
        update_fields=["key", "read_at"],
    )
