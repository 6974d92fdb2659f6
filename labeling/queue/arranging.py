"""Puts what a lane hands out into another order, and has its readers begin at its top again."""

import datetime as dt
from collections.abc import Sequence
from itertools import pairwise

from django.db import transaction

from labeling.models import Lane, QueueEntry, QueueReader, Rater
from labeling.queue.lanes import TOP, of_arm

_CHUNK = 500
_HIGHEST = 2**62  # as `filling.fixed_key` has it: what comes into the lane later is shuffled in


def arrange(*, project_id: int, arm: str, trace_ids: Sequence[int], now: dt.datetime) -> int:
    """Serve these traces in this order. Says how many have another key than before; where they stood in this order
    already, nothing is written."""
    lane = of_arm(project_id=project_id, arm=arm)
    keys = dict(QueueEntry.objects.filter(lane=lane).values_list("trace_id", "key"))
    order = [trace for trace in trace_ids if trace in keys]
    if all(keys[above] > keys[below] for above, below in pairwise(order)):  # what came at one moment has one key
        return 0
    apart = _HIGHEST // (len(order) + 1)
    wanted = {trace: _HIGHEST - apart * place for place, trace in enumerate(order, start=1)}
    moving = sorted(trace for trace in order if keys[trace] != wanted[trace])
    for start in range(0, len(moving), _CHUNK):
        _move(lane, moving[start : start + _CHUNK], wanted)
    _read_from_top(lane, now)
    return len(moving)


def _move(lane: Lane, trace_ids: Sequence[int], keys: dict[int, int]) -> None:
    """Locks in the order of traces, as everywhere; who claims meanwhile takes the next one."""
    with transaction.atomic():
        entries = lane.entries.filter(trace_id__in=trace_ids).order_by("trace_id")
        rows = list(entries.select_for_update(no_key=True, of=("self",)))
        for row in rows:
            row.key = keys[row.trace_id]
        QueueEntry.objects.bulk_update(rows, ["key"])


def _read_from_top(lane: Lane, now: dt.datetime) -> None:
    """Where a reader stood says nothing any more. What somebody has met does not come again."""
    raters = Rater.objects.active().filter(project=lane.project_id).order_by("pk")
    QueueReader.objects.bulk_create(
        [QueueReader(rater_id=pk, lane=lane, key=TOP, read_at=now) for pk in raters.values_list("pk", flat=True)],
        update_conflicts=True,
        unique_fields=["rater", "lane"],
        update_fields=["key", "read_at"],
        batch_size=_CHUNK,
    )
