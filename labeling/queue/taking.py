"""Take one slot for a rater, by the statement in `claim.sql`."""

import datetime as dt
from contextlib import nullcontext
from typing import NamedTuple

from django.db import IntegrityError, connection, transaction

import statements
from labeling.models import Lane, QueueReader
from labeling.queue.lanes import HELD_FOR, floor, renewal_key

CLAIM = statements.load_sql(__file__, "claim.sql")
_PART = statements.sections(CLAIM)
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


def take(*, rater_id: int, now: dt.datetime, opened: bool, chance: float, from_top: bool = False) -> Taken | None:
    """Take a slot for the rater. None if there is none, or they already hold one, or they may not be given any."""
    asked = parameters(rater_id=rater_id, now=now, opened=opened, chance=chance, from_top=from_top)
    try:
        # Outside a transaction the statement is its own; inside one, its failure may not end the whole.
        with transaction.atomic() if connection.in_atomic_block else nullcontext():
            found = statements.rows(CLAIM, asked)
    except IntegrityError as error:
        if not any(name in str(error) for name in _TWO_CLAIMS_MET):
            raise
        return None
    if not found:
        return None
    taken = Taken(*found[0])
    if taken.came_up_empty:
        _mark(rater_id, taken.came_up_empty, now)
    return taken


def is_anything_left(*, rater_id: int, now: dt.datetime, chance: float) -> bool:
    """Look from the top without locks: entries that another claim has just locked count, and `take` skipped them."""
    asked = parameters(rater_id=rater_id, now=now, opened=False, chance=chance, from_top=True)
    return bool(statements.rows(_LOOK, asked))


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
