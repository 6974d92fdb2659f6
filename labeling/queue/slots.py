"""Slots: return, move, take late, add, and resize them.

The slots left in the lanes of a trace plus those that its assignments hold are always the slots that it was given.
"""

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
from labeling.queue import eligibility, lanes, lock_retries
from labeling.queue.lanes import GOLD_SOURCES, SOURCE_OF_PURPOSE, WORK_SOURCES

# A change of the overlap does not give these out again: they have a consensus, or a person has to decide.
_FINAL_STATES = (SettlementState.SETTLED, SettlementState.CONTESTED, SettlementState.DECIDED, SettlementState.LIVE)


class _SlotTarget(NamedTuple):
    """The arrival lane of a slot."""

    trace_id: int
    project_id: int
    arm: str
    draw_id: int | None


class ResizedTraces(NamedTuple):
    trace_ids: list[int]
    changed: int


def lock_active_traces(*, trace_ids: Iterable[int]) -> set[int]:
    """Lock those that are not withdrawn to the end of the transaction, in the order of ids."""
    traces = Trace.objects.available().filter(pk__in=set(trace_ids)).order_by("pk")
    return set(traces.select_for_update(no_key=True).values_list("pk", flat=True))


def return_slots(*, assignments: Sequence[Assignment], now: dt.datetime) -> None:
    """Return the slots of assignments that just ended, inside the caller's transaction.

    Slots of work go to the top-up lane with a new arrival key, below every rater's position. A withdrawn trace gets
    nothing back, nor does work that has become gold, nor gold that has been retired.
    """
    active = lock_active_traces(trace_ids=(row.trace_id for row in assignments))
    rows = sorted((row for row in assignments if row.trace_id in active), key=lambda row: (row.trace_id, row.pk))
    gold_sources = lanes.find_gold_sources(active)
    for row in rows:
        source = SOURCE_OF_PURPOSE.get(AssignmentPurpose(row.purpose))
        if row.lane_id is not None and source in gold_sources.get(row.trace_id, ()):
            entry = QueueEntry.objects.filter(trace_id=row.trace_id, lane_id=row.lane_id)
            entry.update(slots_left=F("slots_left") + 1)
    work = (row for row in rows if row.purpose not in SOURCE_OF_PURPOSE and row.trace_id not in gold_sources)
    for target, number in Counter(_slot_target(row) for row in work).items():
        wanted = number if target.arm == SamplingSource.OPINION else number - _drop_surplus(target, number, now)
        if wanted:
            _add_arrival(target, wanted, now, given=0)


def _slot_target(row: Assignment) -> _SlotTarget:
    arm = SamplingSource.OPINION if row.population == Population.OPINION else SamplingSource.TOP_UP
    return _SlotTarget(row.trace_id, row.project_id, arm, row.draw_id)


def _drop_surplus(target: _SlotTarget, number: int, now: dt.datetime) -> int:
    overlap = Project.objects.values_list("overlap", flat=True).get(pk=target.project_id)
    return drop_surplus_slots(trace_id=target.trace_id, overlap=overlap, limit=number, now=now)


def drop_surplus_slots(*, trace_id: int, overlap: int, limit: int, now: dt.datetime) -> int:
    """Drop returned slots above the project's overlap, and return how many. The caller has locked the trace."""
    entries = QueueEntry.objects.filter(trace_id=trace_id, lane__arm__in=WORK_SOURCES, slots__gt=overlap)
    entry = entries.order_by("pk").first()
    if entry is None:
        return 0
    dropped = min(entry.slots - overlap, limit)
    QueueEntry.objects.filter(pk=entry.pk).update(slots=F("slots") - dropped)
    return dropped


def move_to_top_up(*, entry: QueueEntry, now: dt.datetime) -> None:
    """Move the remaining slots of a locked entry to the top-up lane."""
    QueueEntry.objects.filter(pk=entry.pk).update(slots_left=0)
    target = _SlotTarget(entry.trace_id, entry.lane.project_id, SamplingSource.TOP_UP, entry.draw_id)
    _add_arrival(target, entry.slots_left, now, given=0)


_ADD_ARRIVAL = """
INSERT INTO labeling_queueentry AS e (lane_id, trace_id, draw_id, key, slots, slots_left)
VALUES (%(lane)s, %(trace)s, %(draw)s, %(key)s, %(given)s, %(free)s)
ON CONFLICT (trace_id, lane_id) DO UPDATE SET
    slots = e.slots + excluded.slots, slots_left = e.slots_left + excluded.slots_left, key = excluded.key,
    draw_id = COALESCE(excluded.draw_id, e.draw_id)"""


def _add_arrival(target: _SlotTarget, number: int, now: dt.datetime, *, given: int) -> None:
    """Add slots to an arrival lane. An existing entry moves down to the new key, below every rater's position."""
    lane = lanes.ensure_lane(project_id=target.project_id, arm=target.arm)
    rawsql.fetch_rows(
        _ADD_ARRIVAL,
        {
            "lane": lane.pk,
            "trace": target.trace_id,
            "draw": target.draw_id,
            "key": lanes.arrival_key(now),
            "given": given,
            "free": number,
        },
    )


def take_late_slot(*, assignment_id: int, now: dt.datetime) -> Population | None:
    """Take a free slot for a late submission, and return the population that it counts in. None if no slot is free.

    Runs inside the transaction of the caller, who has locked the assignment and writes `holds_slot` and `population`
    together with the new state (a lapsed assignment cannot hold a slot). It never waits for a claim, and never takes
    more slots than there are.
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
    """Return the entries to take a slot from: returned slots first, added ones last, to stay scheduled if possible."""
    entries = QueueEntry.objects.open().filter(trace_id=assignment.trace_id)
    source = SOURCE_OF_PURPOSE.get(AssignmentPurpose(assignment.purpose))
    entries = entries.filter(lane__arm=source) if source else entries.exclude(lane__arm__in=GOLD_SOURCES)
    order = Case(
        When(lane__arm=SamplingSource.TOP_UP, then=Value(0)),
        When(lane__arm=SamplingSource.OPINION, then=Value(2)),
        default=Value(1),
    )
    return entries.order_by(order, "pk")


def _take_unlocked(entries: QuerySet[QueueEntry]) -> str | None:
    free = entries.select_related("lane").select_for_update(skip_locked=True, no_key=True, of=("self",)).first()
    if free is None:
        return None
    QueueEntry.objects.filter(pk=free.pk).update(slots_left=F("slots_left") - 1)
    return free.lane.arm


def is_labeled_here(*, trace_id: int) -> bool:
    """Return whether people label the trace here. A trace imported with its labels is in no lane."""
    entries = QueueEntry.objects.filter(trace_id=trace_id).exclude(lane__arm__in=GOLD_SOURCES)
    work = Assignment.objects.filter(trace_id=trace_id, purpose=AssignmentPurpose.WORK, origin=AssignmentOrigin.HERE)
    return entries.exists() or work.exists()


def add_slot(*, trace_id: int, round: int, now: dt.datetime, limit: int | None = None) -> bool:
    """Add a slot for a further label, once in a round, and return whether it was added.

    `limit` replaces the project's overlap limit. Gold gets no further labels.
    """
    with transaction.atomic():
        if not lock_active_traces(trace_ids=[trace_id]) or lanes.find_gold_sources([trace_id]):
            return False
        trace = Trace.objects.select_related("project").get(pk=trace_id)
        work = trace.queue_entries.exclude(lane__arm__in=GOLD_SOURCES)
        given = work.aggregate(slots=Sum("slots"))["slots"] or 0
        if given >= (limit or trace.project.overlap_limit):
            return False
        _, is_new = AddedSlot.objects.get_or_create(trace=trace, round=round, defaults={"added_at": now})
        if is_new:
            target = _SlotTarget(trace_id, trace.project_id, SamplingSource.OPINION, _first_draw_id(trace))
            _add_arrival(target, 1, now, given=1)
    return is_new


def _first_draw_id(trace: Trace) -> int | None:
    drawn = trace.queue_entries.exclude(draw=None).order_by("pk").first()
    return drawn.draw_id if drawn else None


def count_initial_slots(*, trace_ids: Sequence[int]) -> dict[int, int]:
    """Return how many labels were scheduled for each trace from the start, without traces outside of work lanes."""
    entries = QueueEntry.objects.filter(trace_id__in=trace_ids, lane__arm__in=WORK_SOURCES).values("trace_id")
    return dict(entries.annotate(n=Sum("slots")).values_list("trace_id", "n"))


def resize_slots(*, project_id: int, overlap: int, after: int, now: dt.datetime, limit: int = 500) -> ResizedTraces:
    """Give the next traces after the id `after` this many slots, for a change of the project's overlap.

    A lower overlap removes only free slots, never an open assignment. Former gold does not become work.
    """
    traces = Trace.objects.available().filter(project=project_id, pk__gt=after)
    ids = list(traces.order_by("pk").values_list("pk", flat=True)[:limit])
    with transaction.atomic():
        active = lock_active_traces(trace_ids=ids)
        entries = (
            QueueEntry.objects.filter(trace__in=active, lane__arm__in=WORK_SOURCES, lane__closed_at=None)
            .exclude(trace__settlement__state__in=_FINAL_STATES)
            .exclude(slots=overlap)
            .exclude(lanes.WAS_GOLD)
        )
        keys = list(entries.select_for_update(no_key=True, of=("self",)).order_by("pk").values_list("pk", flat=True))
        left = Greatest(F("slots_left") + Value(overlap) - F("slots"), Value(0))
        QueueEntry.objects.filter(pk__in=keys).update(slots=F("slots") - F("slots_left") + left, slots_left=left)
        _drop_returned_surplus(active, overlap, now)
    return ResizedTraces(ids, len(keys))


def _drop_returned_surplus(trace_ids: Collection[int], overlap: int, now: dt.datetime) -> None:
    """Drop surplus slots that were returned to the top-up lane: they are free as well."""
    entries = QueueEntry.objects.open().filter(trace__in=trace_ids, lane__arm=SamplingSource.TOP_UP)
    entries = entries.exclude(trace__settlement__state__in=_FINAL_STATES).order_by("pk")
    for entry in entries.select_for_update(no_key=True, of=("self",)):
        dropped = drop_surplus_slots(trace_id=entry.trace_id, overlap=overlap, limit=entry.slots_left, now=now)
        QueueEntry.objects.filter(pk=entry.pk).update(slots_left=F("slots_left") - dropped)
