"""Add traces to lanes, remove them, and reorder them, in small transactions that do not keep claims waiting. The draws
of a batch are stored first, and enqueued once all are stored."""

import datetime as dt
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

import orjson
from django.db import transaction
from django.db.models import Count, F, Max, QuerySet

import rawsql
from accounts.models import User
from events import audit_log
from labeling.models import Assignment, Lane, QueueEntry, Rater, Trace, TraceDraw
from labeling.models.queue import SamplingSource
from labeling.queue import leases, slots
from labeling.queue.slots import (
    BOTTOM,
    GOLD_SOURCES,
    TOP,
    WAS_GOLD,
    arrival_key,
    ensure_lane,
    find_gold_sources,
    move_cursors,
)

_CHUNK = 500
_HIGHEST_KEY = 2**62  # of `shuffle_key`, so that later traces are shuffled into a reordered lane
# The order of these lanes must carry no information: any prefix is a fair sample of the lane.
_SHUFFLED = (SamplingSource.UNIFORM, SamplingSource.RESERVE, SamplingSource.GOLD)
# Traces that no one has begun leave these lanes when they are drawn again.
_REDRAWABLE = (SamplingSource.POLICY, SamplingSource.UNIFORM)


class LaneDepth(NamedTuple):
    """How many traces are left in a lane, counted up to a limit."""

    arm: str
    generation: int
    n_open: int
    is_more: bool  # whether there are more than were counted


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
    """Add traces to a lane with this many slots each, and return how many are new there. Repeating it adds nothing.

    `draws` and `keys` are by trace; the highest key is served first. Without keys a uniform, reserve or gold lane is
    shuffled, and any other lane keeps the given order. A lane of a batch takes traces from the uniform lane and from
    earlier generations unless someone has begun them.
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
    """Do what `enqueue` does, for traces created in this transaction: they are in no lane and cannot be withdrawn."""
    if not trace_ids:
        return 0
    lane_id = _lane_id(project_id, arm)
    keys = _default_keys(project_id, arm, trace_ids, now)
    entries = orjson.dumps([(trace_id, keys[trace_id]) for trace_id in sorted(trace_ids)]).decode()
    rawsql.fetch_rows(_ADD_NEW, {"lane": lane_id, "slots": slots, "entries": entries})
    reset_exhausted_cursors(lane_id, now)
    return len(trace_ids)


def _lane_id(project_id: int, arm: str) -> int:
    rows = rawsql.fetch_rows(_LANE, {"project": project_id, "arm": arm})
    return int(rows[0][0]) if rows else ensure_lane(project_id=project_id, arm=arm).pk


_LANE = "SELECT id FROM labeling_lane WHERE project_id = %(project)s AND arm = %(arm)s AND generation = 0"
_ADD_NEW = """
INSERT INTO labeling_queueentry (lane_id, trace_id, key, slots, slots_left)
SELECT %(lane)s::bigint, (entry ->> 0)::bigint, (entry ->> 1)::bigint, %(slots)s::integer, %(slots)s::integer
FROM json_array_elements(%(entries)s::json) entry"""
# One statement instead of one for each lane: a project has a lane for each source, group and generation.
_LANE_DEPTHS = """
SELECT arm, generation, (
  SELECT COUNT(*) FROM (SELECT 1 FROM labeling_queueentry WHERE lane_id = lane.id AND is_open LIMIT %(limit)s) AS found)
FROM labeling_lane lane WHERE project_id = %(project)s AND closed_at IS NULL ORDER BY arm, generation"""
_RESET_EXHAUSTED_CURSORS = """
UPDATE labeling_lanecursor SET key = %(top)s, read_at = %(now)s WHERE lane_id = %(lane)s AND key = %(bottom)s"""


def reset_exhausted_cursors(lane_id: int, now: dt.datetime) -> None:
    """Let raters for whom the lane was empty start at its top again. The others find new entries above their position
    when they reach the bottom."""
    rawsql.fetch_rows(_RESET_EXHAUSTED_CURSORS, {"top": TOP, "bottom": BOTTOM, "now": now, "lane": lane_id})


def _add_entries(lane: Lane, entries: Sequence[QueueEntry], now: dt.datetime) -> int:
    with transaction.atomic():
        ids = slots.lock_active_traces(trace_ids=[entry.trace_id for entry in entries])
        elsewhere = _clear_other_lanes(lane, ids)
        before = lane.entries.filter(trace_id__in=ids).count()
        new = [entry for entry in entries if entry.trace_id in ids - elsewhere]
        QueueEntry.objects.bulk_create(sorted(new, key=lambda entry: entry.trace_id), ignore_conflicts=True)
        n_reopened = 0
        if lane.arm in GOLD_SOURCES:  # retired gold may be gold for the same use again
            closed, n_slots = lane.entries.filter(trace_id__in=ids, is_open=False), entries[0].slots
            n_reopened = closed.update(slots=n_slots, slots_left=n_slots)
        reset_exhausted_cursors(lane.pk, now)
        return lane.entries.filter(trace_id__in=ids).count() - before + n_reopened


def _clear_other_lanes(lane: Lane, trace_ids: set[int]) -> set[int]:
    """Return the traces that stay in another lane of work. A drawn batch first removes their untouched entries."""
    if lane.arm in GOLD_SOURCES:
        return set()
    others = QueueEntry.objects.filter(lane__project=lane.project_id, trace_id__in=trace_ids).exclude(lane=lane)
    others = others.exclude(lane__arm__in=GOLD_SOURCES)
    if lane.arm in _REDRAWABLE and (lane.arm == SamplingSource.POLICY or lane.generation):
        untouched = _lock_entries(others.filter(lane__arm__in=_REDRAWABLE, slots_left=F("slots")))
        QueueEntry.objects.filter(pk__in=[entry.pk for entry in untouched]).delete()
    return set(others.values_list("trace_id", flat=True))


def _lock_entries(entries: QuerySet[QueueEntry]) -> list[QueueEntry]:
    """Lock the entries that still meet the condition once they are locked, so that no claim interferes."""
    return list(entries.select_for_update(no_key=True, of=("self",)).order_by("trace_id", "lane_id"))


def _default_keys(project_id: int, arm: str, trace_ids: Sequence[int], now: dt.datetime) -> dict[int, int]:
    if arm in _SHUFFLED:
        return {trace_id: shuffle_key(project_id=project_id, arm=arm, trace_id=trace_id) for trace_id in trace_ids}
    first = arrival_key(now)
    return {trace_id: first - number for number, trace_id in enumerate(trace_ids)}


def shuffle_key(*, project_id: int, arm: str, trace_id: int) -> int:
    """Return 62 bits of a hash: a fixed order that is independent of the traces."""
    digest = hashlib.sha256(f"project {project_id} lane {arm} trace {trace_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 2


def withdraw_traces(
    *, trace_ids: Sequence[int], now: dt.datetime, reason: str, by: User | None, logs_each: bool = True
) -> int:
    """Stop assigning these traces, and return how many were active. Held ones are released; open ones can be finished.

    A caller that withdraws very many traces logs them as one event instead of `logs_each`.
    """
    withdrawn = 0
    ids: Iterator[int] = iter(sorted(trace_ids))
    while chunk := list(islice(ids, _CHUNK)):
        with transaction.atomic():
            active = slots.lock_active_traces(trace_ids=chunk)
            QueueEntry.objects.open().filter(trace_id__in=active).update(slots_left=0)
            Trace.objects.filter(pk__in=active).update(withdrawn_at=now, withdrawn_reason=reason[:200])
            if logs_each:
                _log_traces("trace.withdrawn", active, now, reason, by)
        leases.release_held(trace_ids=chunk, now=now, reason=reason, by=by)
        withdrawn += len(active)
    return withdrawn


def reinstate_traces(*, trace_ids: Sequence[int], now: dt.datetime, reason: str, by: User | None) -> int:
    """Assign withdrawn traces again, with the slots that they had left. Former gold does not become work."""
    with transaction.atomic():
        withdrawn = Trace.objects.filter(pk__in=trace_ids).exclude(withdrawn_at=None).order_by("pk")
        ids = set(withdrawn.select_for_update(no_key=True).values_list("pk", flat=True))
        Trace.objects.filter(pk__in=ids).update(withdrawn_at=None, withdrawn_reason="")
        _reopen_work(ids)
        _reopen_gold(ids)
        for lane in Lane.objects.filter(entries__trace_id__in=ids).distinct():
            reset_exhausted_cursors(lane.pk, now)
        _log_traces("trace.reinstated", ids, now, reason, by)
    return len(ids)


def reopen_entries(*, trace_ids: Sequence[int], now: dt.datetime) -> None:
    """Undo `close_entries` for work: assign these traces again, with the slots that no assignment holds. The caller has
    locked the traces."""
    ids = set(trace_ids)
    _reopen_work(ids)
    for lane in Lane.objects.filter(entries__trace_id__in=ids).distinct():
        reset_exhausted_cursors(lane.pk, now)


def _reopen_work(trace_ids: set[int]) -> None:
    held = Assignment.objects.filter(trace_id__in=trace_ids, holds_slot=True).values("trace_id")
    taken = dict(held.annotate(n=Count("pk")).values_list("trace_id", "n"))
    entries = QueueEntry.objects.filter(~WAS_GOLD, trace_id__in=trace_ids, slots__gt=0)
    for entry in _lock_entries(entries.exclude(lane__arm__in=GOLD_SOURCES)):
        left = max(entry.slots - taken.get(entry.trace_id, 0), 0)
        taken[entry.trace_id] = max(taken.get(entry.trace_id, 0) - entry.slots, 0)
        QueueEntry.objects.filter(pk=entry.pk).update(slots_left=left)


def _reopen_gold(trace_ids: set[int]) -> None:
    """Restore the slots of active gold, minus those that were served."""
    for trace_id, arms in find_gold_sources(trace_ids).items():
        for entry in _lock_entries(QueueEntry.objects.filter(trace_id=trace_id, lane__arm__in=arms)):
            taken = Assignment.objects.filter(trace_id=trace_id, lane=entry.lane_id, holds_slot=True).count()
            QueueEntry.objects.filter(pk=entry.pk).update(slots_left=max(entry.slots - taken, 0))


def _log_traces(what: str, trace_ids: set[int], now: dt.datetime, reason: str, by: User | None) -> None:
    projects = Trace.objects.filter(pk__in=trace_ids).values_list("pk", "project_id").order_by("pk")
    entries = (audit_log.EventEntry(what, project, f"trace:{pk}", {"reason": reason}) for pk, project in projects)
    audit_log.log_events(entries, by=by, now=now)


def close_entries(*, project_id: int, arm: str, trace_ids: Sequence[int], now: dt.datetime) -> int:
    """Stop assigning these traces from this sampling source, and return how many were open. Other lanes and open
    assignments do not change."""
    with transaction.atomic():
        active = slots.lock_active_traces(trace_ids=trace_ids)
        entries = QueueEntry.objects.filter(lane__project_id=project_id, lane__arm=arm, trace_id__in=active)
        return entries.open().update(slots_left=0)


def close_lane(*, lane_id: int, now: dt.datetime, by: User | None) -> None:
    """Stop serving a lane. In a lane of a batch, traces that someone has begun move to the top-up lane, and the others
    move back to the uniform lane, where they can be drawn again. Any other lane keeps its entries."""
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
    reset_exhausted_cursors(uniform.pk, now)


def lane_depths(*, project_id: int, at_most: int = 10_000) -> list[LaneDepth]:
    """Count the traces left in each open lane. The limit bounds the cost for a queue of any size."""
    rows = rawsql.fetch_rows(_LANE_DEPTHS, {"project": project_id, "limit": at_most + 1})
    return [LaneDepth(arm, generation, min(n, at_most), n > at_most) for arm, generation, n in rows]


def reorder_lane(*, project_id: int, arm: str, trace_ids: Sequence[int], now: dt.datetime) -> int:
    """Serve these traces in this order, and return how many have a new key. Writes nothing if the order is the same."""
    lane = ensure_lane(project_id=project_id, arm=arm)
    keys = dict(QueueEntry.objects.filter(lane=lane).values_list("trace_id", "key"))
    order = [trace for trace in trace_ids if trace in keys]
    if all(keys[above] > keys[below] for above, below in pairwise(order)):  # simultaneous arrivals share a key
        return 0
    distance = _HIGHEST_KEY // (len(order) + 1)
    new_keys = {trace: _HIGHEST_KEY - distance * place for place, trace in enumerate(order, start=1)}
    moving = sorted(trace for trace in order if keys[trace] != new_keys[trace])
    for start in range(0, len(moving), _CHUNK):
        with transaction.atomic():
            rows = _lock_entries(lane.entries.filter(trace_id__in=moving[start : start + _CHUNK]))
            for row in rows:
                row.key = new_keys[row.trace_id]
            QueueEntry.objects.bulk_update(rows, ["key"])
    # Positions mean nothing in a new order, so every rater starts at the top. No trace comes twice.
    raters = Rater.objects.active().filter(project=project_id).order_by("pk").values_list("pk", flat=True)
    move_cursors(keys={(rater, lane.pk): TOP for rater in raters}, now=now)
    return len(moving)


# Draws


class DrawnTrace(NamedTuple):
    """A drawn trace. `q` is its probability given the draws before it."""

    rank: int
    trace_id: int
    arm: str
    q: float
    score: float
    n_left: int


def next_batch_number(*, project_id: int) -> int:
    return int(TraceDraw.objects.filter(project=project_id).aggregate(last=Max("batch"))["last"] or 0) + 1


def list_drawable_traces(*, project_id: int) -> list[int]:
    """Return the work that no one has begun, in the order of ids: the pool that a batch is drawn from."""
    entries = QueueEntry.objects.open().filter(
        lane__project=project_id,
        lane__arm__in=_REDRAWABLE,
        lane__closed_at=None,
        slots_left=F("slots"),
        trace__withdrawn_at=None,
    )
    return list(entries.order_by("trace_id").values_list("trace_id", flat=True))


def save_draws(
    *, project_id: int, batch: int, draws: Sequence[DrawnTrace], prm: str, pool_size: int, now: dt.datetime
) -> None:
    """Store a part of a batch. Draws that are already stored do not change."""
    TraceDraw.objects.bulk_create(
        (
            TraceDraw(
                **each._replace(q=min(each.q, 1.0))._asdict(),  # rounding can raise a sum above 1
                project_id=project_id,
                batch=batch,
                prm=prm,
                pool_size=pool_size,
                drawn_at=now,
            )
            for each in draws
        ),
        ignore_conflicts=True,
    )


def delete_draws(*, project_id: int, batch: int, now: dt.datetime) -> None:
    """Delete an incomplete batch that was never served, so that it can be drawn again."""
    TraceDraw.objects.filter(project=project_id, batch=batch, drawn_at__lte=now, assignments=None).delete()


def enqueue_draws(
    *, project_id: int, batch: int, ranks: tuple[int, int], generation: int, slots: int, now: dt.datetime
) -> int:
    """Add the draws with ranks in a half-open range to their lanes, in the order of ranks."""
    draws = list(TraceDraw.objects.filter(project=project_id, batch=batch, rank__gte=ranks[0], rank__lt=ranks[1]))
    added = 0
    for arm in _REDRAWABLE:
        mine = {draw.trace_id: draw for draw in draws if draw.arm == arm}
        added += enqueue(
            project_id=project_id,
            arm=arm,
            trace_ids=sorted(mine, key=lambda trace: mine[trace].rank),
            slots=slots,
            now=now,
            generation=generation,
            draws={trace: draw.pk for trace, draw in mine.items()},
            keys={trace: -draw.rank for trace, draw in mine.items()},
        )
    return added


def close_earlier_batches(*, project_id: int, generation: int, by: User | None, now: dt.datetime) -> None:
    """Close the lanes of earlier batches. Traces that no one has begun can be drawn again."""
    lanes = Lane.objects.filter(
        project=project_id,
        arm__in=_REDRAWABLE,
        generation__gt=0,
        generation__lt=generation,
    )
    for pk in lanes.open().order_by("pk").values_list("pk", flat=True):
        close_lane(lane_id=pk, now=now, by=by)
