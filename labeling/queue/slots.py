"""Slots that come back, are taken late, or are added. What is left in the lanes of a trace and what its assignments
hold, together, is always what it was given."""

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from django.db import transaction
from django.db.models import Case, F, QuerySet, Sum, Value, When
from django.db.models.functions import Greatest

import rawsql
from labeling.models import AddedSlot, Assignment, Project, QueueEntry, Trace
from labeling.models.assignment import AssignmentOrigin, AssignmentPurpose, Population
from labeling.models.consensus import SettlementState
from labeling.models.queue import SamplingSource
from labeling.queue import eligibility, gold_lanes, lanes, lock_retries
from labeling.queue.lanes import WORK_SOURCES


class _SlotTarget(NamedTuple):
    """Where a slot goes."""

    trace_id: int
    project_id: int
    arm: str
    draw_id: int | None


def return_slots(*, assignments: Sequence[Assignment], now: dt.datetime) -> None:
    """The slots of assignments that have just ended; inside the caller's transaction. Those of work go to the top-up
    lane under a new arrival, which lies ahead of every reader. A withdrawn trace gets nothing back, nor does one that
    became gold meanwhile, as work, or that is gold no longer, as gold."""
    standing = lock_active_traces(trace_ids=(row.trace_id for row in assignments))
    rows = sorted((row for row in assignments if row.trace_id in standing), key=lambda row: (row.trace_id, row.pk))
    shown = gold_lanes.find_gold_sources(standing)
    for row in rows:
        if row.lane_id is not None and gold_lanes.SOURCE_OF_PURPOSE.get(AssignmentPurpose(row.purpose)) in shown.get(
            row.trace_id, ()
        ):
            entry = QueueEntry.objects.filter(trace_id=row.trace_id, lane_id=row.lane_id)
            entry.update(slots_left=F("slots_left") + 1)
    work = (row for row in rows if row.purpose not in gold_lanes.SOURCE_OF_PURPOSE and row.trace_id not in shown)
    for slot, number in Counter(_slot_target(row) for row in work).items():
        wanted = number if slot.arm == SamplingSource.OPINION else number - _drop_surplus(slot, number, now)
        if wanted:
            _add_arrival(slot, wanted, now, given=0)


def _drop_surplus(slot: _SlotTarget, number: int, now: dt.datetime) -> int:
    overlap = Project.objects.values_list("overlap", flat=True).get(pk=slot.project_id)
    return drop_surplus_slots(trace_id=slot.trace_id, overlap=overlap, at_most=number, now=now)


def drop_surplus_slots(*, trace_id: int, overlap: int, at_most: int, now: dt.datetime) -> int:
    """The project asks for fewer readings than this trace was given out for: what came back is not given out again.
    Says of how many slots that is so. The caller holds the trace."""
    entries = QueueEntry.objects.filter(trace_id=trace_id, lane__arm__in=lanes.WORK_SOURCES, slots__gt=overlap)
    entry = entries.order_by("pk").first()
    if entry is None:
        return 0
    spared = min(entry.slots - overlap, at_most)
    QueueEntry.objects.filter(pk=entry.pk).update(slots=F("slots") - spared)
    return spared


def move_to_top_up(*, entry: QueueEntry, now: dt.datetime) -> None:
    """All that is left of a locked entry goes to the top-up lane."""
    QueueEntry.objects.filter(pk=entry.pk).update(slots_left=0)
    slot = _SlotTarget(entry.trace_id, entry.lane.project_id, SamplingSource.TOP_UP, entry.draw_id)
    _add_arrival(slot, entry.slots_left, now, given=0)


def _slot_target(row: Assignment) -> _SlotTarget:
    arm = SamplingSource.OPINION if row.population == Population.OPINION else SamplingSource.TOP_UP
    return _SlotTarget(row.trace_id, row.project_id, arm, row.draw_id)


def lock_active_traces(*, trace_ids: Iterable[int]) -> set[int]:
    """Those that are not withdrawn, and stay so to the end of the transaction. Locked in one order, as everywhere."""
    traces = Trace.objects.available().filter(pk__in=set(trace_ids)).order_by("pk")
    return set(traces.select_for_update(no_key=True).values_list("pk", flat=True))


_ADD_ARRIVAL = """
INSERT INTO labeling_queueentry AS e (lane_id, trace_id, draw_id, key, slots, slots_left)
VALUES (%(lane)s, %(trace)s, %(draw)s, %(key)s, %(given)s, %(free)s)
ON CONFLICT (trace_id, lane_id) DO UPDATE SET
    slots = e.slots + excluded.slots, slots_left = e.slots_left + excluded.slots_left, key = excluded.key,
    draw_id = COALESCE(excluded.draw_id, e.draw_id)"""


def _add_arrival(slot: _SlotTarget, number: int, now: dt.datetime, *, given: int) -> None:
    """Into a lane of arrivals. An entry that is there already moves down to the new arrival: nobody is past it."""
    lane = lanes.ensure_lane(project_id=slot.project_id, arm=slot.arm)
    rawsql.fetch_rows(
        _ADD_ARRIVAL,
        {
            "lane": lane.pk,
            "trace": slot.trace_id,
            "draw": slot.draw_id,
            "key": lanes.arrival_key(now),
            "given": given,
            "free": number,
        },
    )


def take_late_slot(*, assignment_id: int, now: dt.datetime) -> Population | None:
    """A late submission takes a slot of its trace, if one is free in any lane: then as what it counts, otherwise None.

    Inside the caller's transaction, who has the assignment's row locked and writes `holds_slot` and `population` with
    its new state (a lapsed one cannot hold a slot). It never waits for a claim, and never takes one too many.
    """
    assignment = Assignment.objects.get(pk=assignment_id)
    if assignment.holds_slot:
        return Population(assignment.population)
    for _ in lock_retries.retry_attempts():
        arm = _take_unlocked(_open_entries(assignment))
        if arm is not None:
            return Population.OPINION if arm == SamplingSource.OPINION else Population.SCHEDULED
        if not _open_entries(assignment).exists():
            return None
    raise eligibility.busy_error()


def _open_entries(assignment: Assignment) -> QuerySet[QueueEntry]:
    """What came back first, added ones last: a scheduled reading stays one as long as it can."""
    entries = QueueEntry.objects.open().filter(trace_id=assignment.trace_id)
    arm = gold_lanes.SOURCE_OF_PURPOSE.get(AssignmentPurpose(assignment.purpose))
    mine = (
        entries.filter(lane__arm=arm) if arm else entries.exclude(lane__arm__in=gold_lanes.SOURCE_OF_PURPOSE.values())
    )
    order = Case(
        When(lane__arm=SamplingSource.TOP_UP, then=Value(0)),
        When(lane__arm=SamplingSource.OPINION, then=Value(2)),
        default=Value(1),
    )
    return mine.order_by(order, "pk")


def _take_unlocked(entries: QuerySet[QueueEntry]) -> str | None:
    free = entries.select_related("lane").select_for_update(skip_locked=True, no_key=True, of=("self",)).first()
    if free is None:
        return None
    QueueEntry.objects.filter(pk=free.pk).update(slots_left=F("slots_left") - 1)
    return free.lane.arm


def is_labeled_here(*, trace_id: int) -> bool:
    """Whether people read it here, or may. What came in with its labels stands in no lane."""
    entries = QueueEntry.objects.filter(trace_id=trace_id).exclude(lane__arm__in=gold_lanes.SOURCE_OF_PURPOSE.values())
    read = Assignment.objects.filter(trace_id=trace_id, purpose=AssignmentPurpose.WORK, origin=AssignmentOrigin.HERE)
    return entries.exists() or read.exists()


def add_slot(*, trace_id: int, round: int, now: dt.datetime, limit: int | None = None) -> bool:
    """Ask for a further opinion on a trace: once in a round, up to the project's limit or the one that a person who
    decides has set. Of gold nobody's opinion is asked. Says whether it was added."""
    with transaction.atomic():
        if not lock_active_traces(trace_ids=[trace_id]) or gold_lanes.find_gold_sources([trace_id]):
            return False
        trace = Trace.objects.select_related("project").get(pk=trace_id)
        work = trace.queue_entries.exclude(lane__arm__in=gold_lanes.SOURCE_OF_PURPOSE.values())
        given = work.aggregate(slots=Sum("slots"))["slots"] or 0
        if given >= (limit or trace.project.overlap_limit):
            return False
        _, is_new = AddedSlot.objects.get_or_create(trace=trace, round=round, defaults={"added_at": now})
        if is_new:
            _add_arrival(
                _SlotTarget(trace_id, trace.project_id, SamplingSource.OPINION, _first_draw_id(trace)), 1, now, given=1
            )
    return is_new


def _first_draw_id(trace: Trace) -> int | None:
    drawn = trace.queue_entries.exclude(draw=None).order_by("pk").first()
    return drawn.draw_id if drawn else None


# Gives the traces that nobody has settled more readings, or fewer, when a project changes its overlap.


# What the project stands behind, or a person has to decide, is not given out again for the sake of a number.
_FINAL_STATES = (SettlementState.SETTLED, SettlementState.CONTESTED, SettlementState.DECIDED, SettlementState.LIVE)


class ResizedTraces(NamedTuple):
    trace_ids: list[int]
    changed: int


def count_initial_slots(*, trace_ids: Sequence[int]) -> dict[int, int]:
    """How often each of these was given out from the start; what stands in no lane of work is left out."""
    entries = QueueEntry.objects.filter(trace_id__in=trace_ids, lane__arm__in=WORK_SOURCES).values("trace_id")
    return dict(entries.annotate(n=Sum("slots")).values_list("trace_id", "n"))


def resize_slots(*, project_id: int, overlap: int, after: int, now: dt.datetime, limit: int = 500) -> ResizedTraces:
    """The next traces of the project behind `after`: each is given out `overlap` times from the start. Fewer takes away
    what is still free, never a reading that somebody has in hand. What was gold once is no work again."""
    traces = Trace.objects.available().filter(project=project_id, pk__gt=after)
    ids = list(traces.order_by("pk").values_list("pk", flat=True)[:limit])
    with transaction.atomic():
        standing = lock_active_traces(trace_ids=ids)
        entries = QueueEntry.objects.filter(trace__in=standing, lane__arm__in=WORK_SOURCES, lane__closed_at=None)
        entries = (
            entries.exclude(trace__settlement__state__in=_FINAL_STATES)
            .exclude(slots=overlap)
            .exclude(gold_lanes.WAS_GOLD)
        )
        keys = list(entries.select_for_update(no_key=True, of=("self",)).order_by("pk").values_list("pk", flat=True))
        left = Greatest(F("slots_left") + Value(overlap) - F("slots"), Value(0))
        QueueEntry.objects.filter(pk__in=keys).update(slots=F("slots") - F("slots_left") + left, slots_left=left)
        _drop_returned_surplus(standing, overlap, now)
    return ResizedTraces(ids, len(keys))


def _drop_returned_surplus(trace_ids: Collection[int], overlap: int, now: dt.datetime) -> None:
    """What lapsed or was given back waits in a lane of its own, and is free as well."""
    entries = QueueEntry.objects.open().filter(trace__in=trace_ids, lane__arm=SamplingSource.TOP_UP)
    entries = entries.exclude(trace__settlement__state__in=_FINAL_STATES).order_by("pk")
    for entry in entries.select_for_update(no_key=True, of=("self",)):
        spared = drop_surplus_slots(trace_id=entry.trace_id, overlap=overlap, at_most=entry.slots_left, now=now)
        QueueEntry.objects.filter(pk=entry.pk).update(slots_left=F("slots_left") - spared)
