"""Puts traces into lanes and takes them out, in small transactions: whoever claims is not kept waiting."""

import datetime as dt
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

import orjson
from django.db import transaction
from django.db.models import Count, F, QuerySet

import rawsql
from accounts.models import User
from events import audit_log
from labeling.models import Assignment, Lane, LaneCursor, QueueEntry, Rater, Trace
from labeling.models.queue import SamplingSource
from labeling.queue import gold_lanes, leases, slots
from labeling.queue.lanes import BOTTOM, TOP, arrival_key, ensure_lane

_CHUNK = 500
# In these the order shall say nothing: any beginning of the lane is a fair sample of it.
_SHUFFLED = (SamplingSource.UNIFORM, SamplingSource.RESERVE, SamplingSource.GOLD)
# A trace that nobody has begun moves on when it is drawn again.
_REDRAWABLE = (SamplingSource.UNIFORM, SamplingSource.POLICY)


class LaneDepth(NamedTuple):
    """How many traces a lane still hands out, counted up to a limit."""

    lane_id: int
    arm: str
    generation: int
    n_open: int
    is_more: bool  # there are more than were counted


def enqueue(
    *,
    project_id: int,
    arm: str,
    trace_ids: Sequence[int],
    slots: int,
    now: dt.datetime,
    generation: int = 0,
    draws: Mapping[int, int] | None = None,
    keys: Mapping[int, int] | None = None,
) -> int:
    """Put traces into the lane of an arm, with so many slots each; says how many now stand there that did not before.
    Doing it again adds nothing.

    `draws` and `keys` are by trace; the highest key is read first. Without keys a uniform, reserve or gold lane is
    shuffled, any other keeps the order given. The lanes of a drawn batch take traces over from the uniform lane and
    from earlier generations as long as nobody has begun them; those that are begun stay where they are.
    """
    lane = ensure_lane(project_id=project_id, arm=arm, generation=generation)
    order = keys or _default_keys(project_id, arm, trace_ids, now)
    entries = (
        QueueEntry(
            lane=lane,
            trace_id=trace_id,
            draw_id=(draws or {}).get(trace_id),
            key=order[trace_id],
            slots=slots,
            slots_left=slots,
        )
        for trace_id in trace_ids
    )
    added = 0
    while chunk := list(islice(entries, _CHUNK)):
        added += _add_entries(lane, chunk, now)
    return added


def enqueue_new(*, project_id: int, arm: str, trace_ids: Sequence[int], slots: int, now: dt.datetime) -> int:
    """Do what `enqueue` does for traces made in this transaction: they are in no lane yet, and cannot be withdrawn."""
    if not trace_ids:
        return 0
    lane_id = _lane_id(project_id, arm)
    keys = _default_keys(project_id, arm, trace_ids, now)
    entries = orjson.dumps([(trace_id, keys[trace_id]) for trace_id in sorted(trace_ids)]).decode()
    rawsql.fetch_rows(_ADD_NEW, {"lane": lane_id, "slots": slots, "entries": entries})
    rawsql.fetch_rows(_RESET_EXHAUSTED_CURSORS, _to_top(lane_id, now))
    return len(trace_ids)


def _lane_id(project_id: int, arm: str) -> int:
    found = rawsql.fetch_rows(_LANE, {"project": project_id, "arm": arm})
    return int(found[0][0]) if found else ensure_lane(project_id=project_id, arm=arm).pk


def _to_top(lane_id: int, now: dt.datetime) -> dict[str, object]:
    return {"top": TOP, "bottom": BOTTOM, "now": now, "lane": lane_id}


_LANE = "SELECT id FROM labeling_lane WHERE project_id = %(project)s AND arm = %(arm)s AND generation = 0"
_ADD_NEW = """
INSERT INTO labeling_queueentry (lane_id, trace_id, key, slots, slots_left)
SELECT %(lane)s::bigint, (entry ->> 0)::bigint, (entry ->> 1)::bigint, %(slots)s::integer, %(slots)s::integer
FROM json_array_elements(%(entries)s::json) entry"""
_RESET_EXHAUSTED_CURSORS = """
UPDATE labeling_lanecursor SET key = %(top)s, read_at = %(now)s WHERE lane_id = %(lane)s AND key = %(bottom)s"""


def _add_entries(lane: Lane, entries: Sequence[QueueEntry], now: dt.datetime) -> int:
    """Locks in the order of traces, as everywhere."""
    with transaction.atomic():
        ids = slots.lock_active_traces(trace_ids=[entry.trace_id for entry in entries])
        elsewhere = _clear_other_lanes(lane, ids)
        before = lane.entries.filter(trace_id__in=ids).count()
        new = [entry for entry in entries if entry.trace_id in ids - elsewhere]
        QueueEntry.objects.bulk_create(sorted(new, key=lambda entry: entry.trace_id), ignore_conflicts=True)
        again = (
            _reopen_gold_entries(lane, ids, entries[0].slots)
            if lane.arm in gold_lanes.SOURCE_OF_PURPOSE.values()
            else 0
        )
        _reset_exhausted_cursors(lane, now)
        return lane.entries.filter(trace_id__in=ids).count() - before + again


def _reopen_gold_entries(lane: Lane, trace_ids: set[int], slots: int) -> int:
    """Gold that was retired, and is gold for the same use once more, begins as it did the first time."""
    entries = lane.entries.filter(trace_id__in=trace_ids, is_open=False)
    return entries.update(slots=slots, slots_left=slots)


def _reset_exhausted_cursors(lane: Lane, now: dt.datetime) -> None:
    """Those for whom the lane came up empty begin at its top again. The others go on down: what lies above them they
    find when they are through."""
    rawsql.fetch_rows(_RESET_EXHAUSTED_CURSORS, _to_top(lane.pk, now))


def _clear_other_lanes(lane: Lane, trace_ids: set[int]) -> set[int]:
    """Traces that stay in another lane of work. For a drawn batch the untouched entries there are taken out."""
    if lane.arm in gold_lanes.SOURCE_OF_PURPOSE.values():
        return set()
    others = QueueEntry.objects.filter(lane__project=lane.project_id, trace_id__in=trace_ids).exclude(lane=lane)
    others = others.exclude(lane__arm__in=gold_lanes.SOURCE_OF_PURPOSE.values())
    if lane.arm in _REDRAWABLE and (lane.arm == SamplingSource.POLICY or lane.generation):
        untouched = _lock_entries(others.filter(lane__arm__in=_REDRAWABLE, slots_left=F("slots")))
        QueueEntry.objects.filter(pk__in=[entry.pk for entry in untouched]).delete()
    return set(others.values_list("trace_id", flat=True))


def _lock_entries(entries: QuerySet[QueueEntry]) -> list[QueueEntry]:
    """What still meets the condition once it is locked: no claim comes between."""
    return list(entries.select_for_update(no_key=True, of=("self",)).order_by("trace_id", "lane_id"))


def _default_keys(project_id: int, arm: str, trace_ids: Sequence[int], now: dt.datetime) -> dict[int, int]:
    if arm in _SHUFFLED:
        return {trace_id: shuffle_key(project_id=project_id, arm=arm, trace_id=trace_id) for trace_id in trace_ids}
    first = arrival_key(now)
    return {trace_id: first - number for number, trace_id in enumerate(trace_ids)}


def shuffle_key(*, project_id: int, arm: str, trace_id: int) -> int:
    """62 bits of a hash: a fixed order that has nothing to do with what the traces are."""
    digest = hashlib.sha256(f"project {project_id} lane {arm} trace {trace_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 2


def withdraw_traces(
    *, trace_ids: Sequence[int], now: dt.datetime, reason: str, by: User | None, logs_each: bool = True
) -> int:
    """Hand these traces out no more. What is opened may be finished, and is kept; what is held goes back. Whoever
    withdraws very many says so once himself."""
    withdrawn = 0
    ids: Iterator[int] = iter(sorted(trace_ids))
    while chunk := list(islice(ids, _CHUNK)):
        with transaction.atomic():
            standing = slots.lock_active_traces(trace_ids=chunk)
            QueueEntry.objects.open().filter(trace_id__in=standing).update(slots_left=0)
            Trace.objects.filter(pk__in=standing).update(withdrawn_at=now, withdrawn_reason=reason[:200])
            if logs_each:
                _log_traces("trace.withdrawn", standing, now, reason, by)
        leases.release_held(trace_ids=chunk, now=now, reason=reason, by=by)
        withdrawn += len(standing)
    return withdrawn


def reinstate_traces(*, trace_ids: Sequence[int], now: dt.datetime, reason: str, by: User | None) -> int:
    """Hand withdrawn traces out again, as often as they were still to be read. What was gold once is no work."""
    with transaction.atomic():
        withdrawn = Trace.objects.filter(pk__in=trace_ids).exclude(withdrawn_at=None).order_by("pk")
        ids = set(withdrawn.select_for_update(no_key=True).values_list("pk", flat=True))
        Trace.objects.filter(pk__in=ids).update(withdrawn_at=None, withdrawn_reason="")
        _reopen_work(ids)
        _reopen_gold(ids)
        for lane in Lane.objects.filter(entries__trace_id__in=ids).distinct():
            _reset_exhausted_cursors(lane, now)
        _log_traces("trace.reinstated", ids, now, reason, by)
    return len(ids)


def _reopen_work(trace_ids: set[int]) -> None:
    held = Assignment.objects.filter(trace_id__in=trace_ids, holds_slot=True).values("trace_id")
    taken = dict(held.annotate(n=Count("pk")).values_list("trace_id", "n"))
    entries = QueueEntry.objects.filter(~gold_lanes.WAS_GOLD, trace_id__in=trace_ids, slots__gt=0)
    for entry in _lock_entries(entries.exclude(lane__arm__in=gold_lanes.SOURCE_OF_PURPOSE.values())):
        left = max(entry.slots - taken.get(entry.trace_id, 0), 0)
        taken[entry.trace_id] = max(taken.get(entry.trace_id, 0) - entry.slots, 0)
        QueueEntry.objects.filter(pk=entry.pk).update(slots_left=left)


def _reopen_gold(trace_ids: set[int]) -> None:
    """Gold that is in use still, less what was shown of it."""
    for trace_id, arms in gold_lanes.find_gold_sources(trace_ids).items():
        for entry in _lock_entries(QueueEntry.objects.filter(trace_id=trace_id, lane__arm__in=arms)):
            taken = Assignment.objects.filter(trace_id=trace_id, lane=entry.lane_id, holds_slot=True).count()
            QueueEntry.objects.filter(pk=entry.pk).update(slots_left=max(entry.slots - taken, 0))


def _log_traces(what: str, trace_ids: set[int], now: dt.datetime, reason: str, by: User | None) -> None:
    projects = Trace.objects.filter(pk__in=trace_ids).values_list("pk", "project_id").order_by("pk")
    entries = (audit_log.EventEntry(what, project, f"trace:{pk}", {"reason": reason}) for pk, project in projects)
    audit_log.log_events(entries, by=by, now=now)


def close_entries(*, project_id: int, arm: str, trace_ids: Sequence[int], now: dt.datetime) -> int:
    """Hand these traces out no more in this arm; in others they stay. What is in hand is finished. Says how many were
    still to be had."""
    with transaction.atomic():
        standing = slots.lock_active_traces(trace_ids=trace_ids)
        entries = QueueEntry.objects.filter(lane__project_id=project_id, lane__arm=arm, trace_id__in=standing)
        return entries.open().update(slots_left=0)


def close_lane(*, lane_id: int, now: dt.datetime, by: User | None) -> None:
    """Serve a lane no longer. What is begun there is finished through the top-up lane; what nobody has begun goes back
    to the uniform lane, from where it may be drawn again. Any other lane than one of a batch keeps what it has."""
    lane = Lane.objects.get(pk=lane_id)
    with transaction.atomic():
        if not Lane.objects.open().filter(pk=lane_id).update(closed_at=now):
            return
        audit_log.log_event(what="lane.closed", by=by, now=now, project=lane.project_id, subject=f"lane:{lane_id}")
    if lane.arm != SamplingSource.POLICY and not (lane.arm == SamplingSource.UNIFORM and lane.generation):
        return
    while trace_ids := list(lane.entries.open().values_list("trace_id", flat=True)[:_CHUNK]):
        with transaction.atomic():
            slots.lock_active_traces(trace_ids=trace_ids)
            _empty_lane(lane, _lock_entries(lane.entries.open().filter(trace_id__in=trace_ids)), now)


def _empty_lane(lane: Lane, entries: Sequence[QueueEntry], now: dt.datetime) -> None:
    untouched = [entry for entry in entries if entry.slots_left == entry.slots]
    for entry in entries:
        if entry.slots_left < entry.slots:
            slots.move_to_top_up(entry=entry, now=now)
    lane.entries.filter(pk__in=[entry.pk for entry in untouched]).delete()
    uniform = ensure_lane(project_id=lane.project_id, arm=SamplingSource.UNIFORM)
    QueueEntry.objects.bulk_create(
        QueueEntry(
            lane=uniform,
            trace_id=entry.trace_id,
            key=shuffle_key(project_id=lane.project_id, arm=SamplingSource.UNIFORM, trace_id=entry.trace_id),
            slots=entry.slots,
            slots_left=entry.slots,
        )
        for entry in untouched
    )
    _reset_exhausted_cursors(uniform, now)


def lane_depths(*, project_id: int, at_most: int = 10_000) -> list[LaneDepth]:
    """What is left, by lane. Counts no further than the limit: the answer costs the same for any size of queue."""
    lanes = Lane.objects.open().filter(project_id=project_id).order_by("arm", "generation")
    return [_lane_depth(lane, at_most) for lane in lanes]


def _lane_depth(lane: Lane, at_most: int) -> LaneDepth:
    counted = lane.entries.open()[: at_most + 1].count()
    return LaneDepth(lane.pk, lane.arm, lane.generation, min(counted, at_most), counted > at_most)


# Puts what a lane hands out into another order, and has its readers begin at its top again.


_REORDER_CHUNK = 500
_HIGHEST_KEY = 2**62  # as `filling.fixed_key` has it: what comes into the lane later is shuffled in


def reorder_lane(*, project_id: int, arm: str, trace_ids: Sequence[int], now: dt.datetime) -> int:
    """Serve these traces in this order. Says how many have another key than before; where they stood in this order
    already, nothing is written."""
    lane = ensure_lane(project_id=project_id, arm=arm)
    keys = dict(QueueEntry.objects.filter(lane=lane).values_list("trace_id", "key"))
    order = [trace for trace in trace_ids if trace in keys]
    if all(keys[above] > keys[below] for above, below in pairwise(order)):  # what came at one moment has one key
        return 0
    apart = _HIGHEST_KEY // (len(order) + 1)
    wanted = {trace: _HIGHEST_KEY - apart * place for place, trace in enumerate(order, start=1)}
    moving = sorted(trace for trace in order if keys[trace] != wanted[trace])
    for start in range(0, len(moving), _REORDER_CHUNK):
        _write_keys(lane, moving[start : start + _REORDER_CHUNK], wanted)
    _reset_cursors(lane, now)
    return len(moving)


def _write_keys(lane: Lane, trace_ids: Sequence[int], keys: dict[int, int]) -> None:
    """Locks in the order of traces, as everywhere; who claims meanwhile takes the next one."""
    with transaction.atomic():
        entries = lane.entries.filter(trace_id__in=trace_ids).order_by("trace_id")
        rows = list(entries.select_for_update(no_key=True, of=("self",)))
        for row in rows:
            row.key = keys[row.trace_id]
        QueueEntry.objects.bulk_update(rows, ["key"])


def _reset_cursors(lane: Lane, now: dt.datetime) -> None:
    """Where a reader stood says nothing any more. What somebody has met does not come again."""
    raters = Rater.objects.active().filter(project=lane.project_id).order_by("pk")
    LaneCursor.objects.bulk_create(
        [LaneCursor(rater_id=pk, lane=lane, key=TOP, read_at=now) for pk in raters.values_list("pk", flat=True)],
        update_conflicts=True,
        unique_fields=["rater", "lane"],
        update_fields=["key", "read_at"],
        batch_size=_REORDER_CHUNK,
    )
