"""Slots that come back, are taken late, or are added. What is left in the lanes of a trace and what its assignments
hold, together, is always what it was given."""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.db import transaction
from django.db.models import Case, F, QuerySet, Sum, Value, When

import statements
from labeling.models import AddedSlot, Assignment, Project, QueueEntry, Trace
from labeling.models.assignment import Origin, Population, Purpose
from labeling.models.queue import Arm
from labeling.queue import known, lanes, patience, refusals


class _Slot(NamedTuple):
    """Where a slot goes."""

    trace_id: int
    project_id: int
    arm: str
    draw_id: int | None


def give_back(*, assignments: Sequence[Assignment], now: dt.datetime) -> None:
    """The slots of assignments that have just ended; inside the caller's transaction. Those of work go to the top-up
    lane under a new arrival, which lies ahead of every reader. A withdrawn trace gets nothing back, nor does one that
    became gold meanwhile, as work, or that is gold no longer, as gold."""
    standing = lock_standing(trace_ids=(row.trace_id for row in assignments))
    rows = sorted((row for row in assignments if row.trace_id in standing), key=lambda row: (row.trace_id, row.pk))
    shown = known.among(standing)
    for row in rows:
        if row.lane_id is not None and known.ARMS.get(Purpose(row.purpose)) in shown.get(row.trace_id, ()):
            entry = QueueEntry.objects.filter(trace_id=row.trace_id, lane_id=row.lane_id)
            entry.update(slots_left=F("slots_left") + 1)
    work = (row for row in rows if row.purpose not in known.ARMS and row.trace_id not in shown)
    for slot, number in Counter(_slot_of(row) for row in work).items():
        wanted = number if slot.arm == Arm.OPINION else number - _spare_now(slot, number, now)
        if wanted:
            _put(slot, wanted, now, given=0)


def _spare_now(slot: _Slot, number: int, now: dt.datetime) -> int:
    overlap = Project.objects.values_list("overlap", flat=True).get(pk=slot.project_id)
    return spare(trace_id=slot.trace_id, overlap=overlap, at_most=number, now=now)


def spare(*, trace_id: int, overlap: int, at_most: int, now: dt.datetime) -> int:
    """The project asks for fewer readings than this trace was given out for: what came back is not given out again.
    Says of how many slots that is so. The caller holds the trace."""
    entries = QueueEntry.objects.filter(trace_id=trace_id, lane__arm__in=lanes.WORK, slots__gt=overlap)
    entry = entries.order_by("pk").first()
    if entry is None:
        return 0
    spared = min(entry.slots - overlap, at_most)
    QueueEntry.objects.filter(pk=entry.pk).update(slots=F("slots") - spared)
    return spared


def top_up(*, entry: QueueEntry, now: dt.datetime) -> None:
    """All that is left of a locked entry goes to the top-up lane."""
    QueueEntry.objects.filter(pk=entry.pk).update(slots_left=0)
    slot = _Slot(entry.trace_id, entry.lane.project_id, Arm.TOP_UP, entry.draw_id)
    _put(slot, entry.slots_left, now, given=0)


def _slot_of(row: Assignment) -> _Slot:
    arm = Arm.OPINION if row.population == Population.OPINION else Arm.TOP_UP
    return _Slot(row.trace_id, row.project_id, arm, row.draw_id)


def lock_standing(*, trace_ids: Iterable[int]) -> set[int]:
    """Those that are not withdrawn, and stay so to the end of the transaction. Locked in one order, as everywhere."""
    traces = Trace.objects.available().filter(pk__in=set(trace_ids)).order_by("pk")
    return set(traces.select_for_update(no_key=True).values_list("pk", flat=True))


_PUT = """
INSERT INTO labeling_queueentry AS e (lane_id, trace_id, draw_id, key, slots, slots_left)
VALUES (%(lane)s, %(trace)s, %(draw)s, %(key)s, %(given)s, %(free)s)
ON CONFLICT (trace_id, lane_id) DO UPDATE SET
    slots = e.slots + excluded.slots, slots_left = e.slots_left + excluded.slots_left, key = excluded.key,
    draw_id = COALESCE(excluded.draw_id, e.draw_id)"""


def _put(slot: _Slot, number: int, now: dt.datetime, *, given: int) -> None:
    """Into a lane of arrivals. An entry that is there already moves down to the new arrival: nobody is past it."""
    lane = lanes.of_arm(project_id=slot.project_id, arm=slot.arm)
    statements.rows(
        _PUT,
        {
            "lane": lane.pk,
            "trace": slot.trace_id,
            "draw": slot.draw_id,
            "key": lanes.arrival_key(now),
            "given": given,
            "free": number,
        },
    )


def take_slot(*, assignment_id: int, now: dt.datetime) -> Population | None:
    """A late submission takes a slot of its trace, if one is free in any lane: then as what it counts, otherwise None.

    Inside the caller's transaction, who has the assignment's row locked and writes `holds_slot` and `population` with
    its new state (a lapsed one cannot hold a slot). It never waits for a claim, and never takes one too many.
    """
    assignment = Assignment.objects.get(pk=assignment_id)
    if assignment.holds_slot:
        return Population(assignment.population)
    for _ in patience.tries():
        arm = _take_one(_open_entries(assignment))
        if arm is not None:
            return Population.OPINION if arm == Arm.OPINION else Population.SCHEDULED
        if not _open_entries(assignment).exists():
            return None
    raise refusals.too_busy()


def _open_entries(assignment: Assignment) -> QuerySet[QueueEntry]:
    """What came back first, added ones last: a scheduled reading stays one as long as it can."""
    entries = QueueEntry.objects.open().filter(trace_id=assignment.trace_id)
    arm = known.ARMS.get(Purpose(assignment.purpose))
    mine = entries.filter(lane__arm=arm) if arm else entries.exclude(lane__arm__in=known.ARMS.values())
    order = Case(
        When(lane__arm=Arm.TOP_UP, then=Value(0)), When(lane__arm=Arm.OPINION, then=Value(2)), default=Value(1)
    )
    return mine.order_by(order, "pk")


def _take_one(entries: QuerySet[QueueEntry]) -> str | None:
    free = entries.select_related("lane").select_for_update(skip_locked=True, no_key=True, of=("self",)).first()
    if free is None:
        return None
    QueueEntry.objects.filter(pk=free.pk).update(slots_left=F("slots_left") - 1)
    return free.lane.arm


def is_handed_out(*, trace_id: int) -> bool:
    """Whether people read it here, or may. What came in with its labels stands in no lane."""
    entries = QueueEntry.objects.filter(trace_id=trace_id).exclude(lane__arm__in=known.ARMS.values())
    read = Assignment.objects.filter(trace_id=trace_id, purpose=Purpose.WORK, origin=Origin.HERE)
    return entries.exists() or read.exists()


def add_slot(*, trace_id: int, round: int, now: dt.datetime, limit: int | None = None) -> bool:
    """Ask for a further opinion on a trace: once in a round, up to the project's limit or the one that a person who
    decides has set. Of gold nobody's opinion is asked. Says whether it was added."""
    with transaction.atomic():
        if not lock_standing(trace_ids=[trace_id]) or known.among([trace_id]):
            return False
        trace = Trace.objects.select_related("project").get(pk=trace_id)
        work = trace.queue_entries.exclude(lane__arm__in=known.ARMS.values())
        given = work.aggregate(slots=Sum("slots"))["slots"] or 0
        if given >= (limit or trace.project.overlap_limit):
            return False
        _, is_new = AddedSlot.objects.get_or_create(trace=trace, round=round, defaults={"added_at": now})
        if is_new:
            _put(_Slot(trace_id, trace.project_id, Arm.OPINION, _draw_of(trace)), 1, now, given=1)
    return is_new


def _draw_of(trace: Trace) -> int | None:
    drawn = trace.queue_entries.exclude(draw=None).order_by("pk").first()
    return drawn.draw_id if drawn else None
