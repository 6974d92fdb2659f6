"""Gives the traces that nobody has settled more readings, or fewer, when a project changes its overlap."""

import datetime as dt
from collections.abc import Collection, Sequence
from typing import NamedTuple

from django.db import transaction
from django.db.models import F, Sum, Value
from django.db.models.functions import Greatest

from labeling.models import QueueEntry, Trace
from labeling.models.consensus import SettlementState
from labeling.models.queue import Arm
from labeling.queue import known, slots
from labeling.queue.lanes import WORK

# What the project stands behind, or a person has to decide, is not given out again for the sake of a number.
_STAYS = (SettlementState.SETTLED, SettlementState.CONTESTED, SettlementState.DECIDED, SettlementState.LIVE)


class Resized(NamedTuple):
    trace_ids: list[int]
    changed: int


def given(*, trace_ids: Sequence[int]) -> dict[int, int]:
    """How often each of these was given out from the start; what stands in no lane of work is left out."""
    entries = QueueEntry.objects.filter(trace_id__in=trace_ids, lane__arm__in=WORK).values("trace_id")
    return dict(entries.annotate(n=Sum("slots")).values_list("trace_id", "n"))


def resize(*, project_id: int, overlap: int, after: int, now: dt.datetime, limit: int = 500) -> Resized:
    """The next traces of the project behind `after`: each is given out `overlap` times from the start. Fewer takes away
    what is still free, never a reading that somebody has in hand. What was gold once is no work again."""
    traces = Trace.objects.available().filter(project=project_id, pk__gt=after)
    ids = list(traces.order_by("pk").values_list("pk", flat=True)[:limit])
    with transaction.atomic():
        standing = slots.lock_standing(trace_ids=ids)
        entries = QueueEntry.objects.filter(trace__in=standing, lane__arm__in=WORK, lane__closed_at=None)
        entries = entries.exclude(trace__settlement__state__in=_STAYS).exclude(slots=overlap).exclude(known.WAS_GOLD)
        keys = list(entries.select_for_update(no_key=True, of=("self",)).order_by("pk").values_list("pk", flat=True))
        left = Greatest(F("slots_left") + Value(overlap) - F("slots"), Value(0))
        QueueEntry.objects.filter(pk__in=keys).update(slots=F("slots") - F("slots_left") + left, slots_left=left)
        _take_what_came_back(standing, overlap, now)
    return Resized(ids, len(keys))


def _take_what_came_back(trace_ids: Collection[int], overlap: int, now: dt.datetime) -> None:
    """What lapsed or was given back waits in a lane of its own, and is free as well."""
    entries = QueueEntry.objects.open().filter(trace__in=trace_ids, lane__arm=Arm.TOP_UP)
    entries = entries.exclude(trace__settlement__state__in=_STAYS).order_by("pk")
    for entry in entries.select_for_update(no_key=True, of=("self",)):
        spared = slots.spare(trace_id=entry.trace_id, overlap=overlap, at_most=entry.slots_left, now=now)
        QueueEntry.objects.filter(pk=entry.pk).update(slots_left=F("slots_left") - spared)
