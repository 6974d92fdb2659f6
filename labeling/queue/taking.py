"""Takes one slot for a rater: one statement on PostgreSQL, one short transaction on SQLite."""

import datetime as dt

from django.db import connection

from labeling.models import Lane, QueueReader
from labeling.queue import on_postgresql, on_sqlite
from labeling.queue.lanes import Taken, asked, floor


def take(*, rater_id: int, now: dt.datetime, opened: bool, chance: float, from_top: bool = False) -> Taken | None:
    """Take a slot for the rater. None: there is nothing, or he already holds one, or he may not be handed anything."""
    take_one = on_postgresql.take if connection.vendor == "postgresql" else on_sqlite.take
    taken = take_one(parameters=asked(rater_id, now, chance, from_top=from_top), now=now, opened=opened)
    if taken is not None and taken.came_up_empty:
        _mark(rater_id, taken.came_up_empty, now)
    return taken


def is_anything_left(*, rater_id: int, now: dt.datetime, chance: float) -> bool:
    """Look from the top without locks: what somebody else was just locking is seen here and was skipped by `take`."""
    look = on_postgresql.is_anything_left if connection.vendor == "postgresql" else on_sqlite.is_anything_left
    return look(asked(rater_id, now, chance, from_top=True))


def _mark(rater_id: int, lane_ids: list[int], now: dt.datetime) -> None:
    """Remember that these lanes came up empty, so that the next claim does not walk down them again."""
    arms = Lane.objects.filter(pk__in=lane_ids).values_list("pk", "arm")
    QueueReader.objects.bulk_create(
        [QueueReader(rater_id=rater_id, lane_id=pk, key=floor(arm, now), read_at=now) for pk, arm in sorted(arms)],
        update_conflicts=True,
        unique_fields=["rater", "lane"],
        update_fields=["key", "read_at"],
    )
