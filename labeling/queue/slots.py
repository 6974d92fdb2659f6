"""Lanes and slots: the keys of a lane's entries, and how slots are returned, moved, taken late, added, and resized.

A lane is one sampling source of one generation. Raters read a lane from its highest (key, trace) down: entries above a
rater's position are already assigned to that rater, or not eligible for them. The position is the newest assignment
that the lane gave the rater; a newer `LaneCursor` says that the lane was empty from its key down. `claim.sql` applies
these rules.

The slots left in a trace's lanes plus those that its assignments hold always equal the slots that it was given.
"""

import datetime as dt
import random
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from django.db import transaction
from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Greatest

import rawsql
from labeling.models import AddedSlot, Assignment, Gold, Lane, LaneCursor, QueueEntry, Trace
from labeling.models.assignment import AssignmentOrigin, AssignmentPurpose, Population
from labeling.models.consensus import SettlementState
from labeling.models.gold import GoldUse
from labeling.models.queue import SamplingSource
from labeling.models.rater import RaterKind
from labeling.queue.eligibility import QueueIsBusy

BOTTOM = -(2**63)
TOP = 2**63 - 1

# Returned slots are added below every position, in the order of their return. A transaction with an earlier time may
# commit later, so positions stay this far behind, and a claim searches from the top before it reports that nothing is
# left.
ARRIVAL_MARGIN = dt.timedelta(seconds=10)
# A cursor is renewed when it lags this far: rarely, because each update leaves a dead row behind.
CURSOR_RENEWAL = dt.timedelta(seconds=60)
_MICROSECOND = dt.timedelta(microseconds=1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

ARRIVAL_SOURCES = (SamplingSource.CHOSEN, SamplingSource.TOP_UP, SamplingSource.OPINION)  # slots arrive one by one
# The lanes that give out each trace as often as the project's overlap.
WORK_SOURCES = (SamplingSource.UNIFORM, SamplingSource.POLICY, SamplingSource.RESERVE)

# Gold is served from lanes of its own, so that it never becomes work.
SOURCE_OF_PURPOSE = {
    AssignmentPurpose.TRAINING: SamplingSource.TRAINING,
    AssignmentPurpose.SCREENING: SamplingSource.SCREENING,
    AssignmentPurpose.GOLD: SamplingSource.GOLD,
}
GOLD_SOURCES = tuple(SOURCE_OF_PURPOSE.values())
_SOURCE_OF_USE = {
    GoldUse.TRAINING: SamplingSource.TRAINING,
    GoldUse.SCREENING: SamplingSource.SCREENING,
    GoldUse.HIDDEN: SamplingSource.GOLD,
}

# Retired gold does not become work: raters may remember its answer.
WAS_GOLD = Exists(Gold.objects.filter(trace=OuterRef("trace")))

# A change of the overlap does not give these out again: they have a consensus, or a person has to decide.
_FINAL_STATES = (
    SettlementState.SETTLED,
    SettlementState.CONTESTED,
    SettlementState.DECIDED,
    SettlementState.LIVE,
    SettlementState.ASSISTED,
)

# A claim holds its lock for a few milliseconds, longer on a busy machine. The attempts take about two seconds in total.
_ATTEMPTS = 40
_FIRST_SECONDS, _LONGEST_SECONDS = 0.004, 0.06


# Lanes


def find_gold_sources(trace_ids: Collection[int]) -> dict[int, set[str]]:
    """Return the traces that are gold now, each with the lanes that serve it. No lane serves a canary."""
    sources: dict[int, set[str]] = defaultdict(set)
    rows = Gold.objects.active().filter(trace_id__in=trace_ids).values_list("trace_id", "use")
    for trace_id, use in rows:
        source = _SOURCE_OF_USE.get(GoldUse(use))
        sources[trace_id] |= {source} if source else set()
    return sources


def arrival_key(at: dt.datetime) -> int:
    """Return the negated microseconds since 1970, so that later arrivals are further down."""
    return -((at - _EPOCH) // _MICROSECOND)


def exhausted_key(arm: str, now: dt.datetime) -> int:
    """Return the position of a rater in a lane that was empty."""
    return arrival_key(now - ARRIVAL_MARGIN) if arm in ARRIVAL_SOURCES else BOTTOM


def renewal_key(now: dt.datetime) -> int:
    """Return the key above which the cursor of an empty arrival lane is renewed."""
    return exhausted_key(SamplingSource.TOP_UP, now) + CURSOR_RENEWAL // _MICROSECOND


def ensure_lane(*, project_id: int, arm: str, generation: int = 0, group_id: int | None = None) -> Lane:
    return Lane.objects.get_or_create(project_id=project_id, arm=arm, generation=generation, group_id=group_id)[0]


def move_cursors(*, keys: Mapping[tuple[int, int], int], now: dt.datetime) -> None:
    """Move raters to these keys, which are by rater and lane."""
    LaneCursor.objects.bulk_create(
        [LaneCursor(rater_id=rater, lane_id=lane, key=key, read_at=now) for (rater, lane), key in keys.items()],
        update_conflicts=True,
        unique_fields=["rater", "lane"],
        update_fields=["key", "read_at"],
        batch_size=500,
    )


# Slots


def retry_attempts() -> Iterator[None]:
    """Yield immediately, then after growing random pauses, so that concurrent callers do not collide each time."""
    yield
    for number in range(1, _ATTEMPTS):
        longest = min(_LONGEST_SECONDS, _FIRST_SECONDS * 2**number)
        time.sleep(longest * random.uniform(0.5, 1))  # noqa: S311  spreads concurrent attempts
        yield


class _SlotTarget(NamedTuple):
    """The arrival lane of a slot."""

    trace_id: int
    project_id: int
    arm: str
    draw_id: int | None
    group_id: int | None = None


def lock_active_traces(*, trace_ids: Iterable[int]) -> set[int]:
    """Lock those that are not withdrawn to the end of the transaction, in the order of ids."""
    traces = Trace.objects.available().filter(pk__in=set(trace_ids)).order_by("pk")
    return set(traces.select_for_update(no_key=True).values_list("pk", flat=True))


def return_slots(*, assignments: Sequence[Assignment], now: dt.datetime) -> None:
    """Return the slots of assignments that just ended, inside the caller's transaction.

    Slots of work go to the top-up lane, those of chosen traces back to their lane, with a new arrival key below every
    rater's position. A withdrawn trace gets
    nothing back, nor does work that has become gold, nor gold that has been retired.
    """
    active = lock_active_traces(trace_ids=(row.trace_id for row in assignments))
    rows = sorted((row for row in assignments if row.trace_id in active), key=lambda row: (row.trace_id, row.pk))
    gold_sources = find_gold_sources(active)
    for row in rows:
        source = SOURCE_OF_PURPOSE.get(AssignmentPurpose(row.purpose))
        if row.lane_id is not None and source in gold_sources.get(row.trace_id, ()):
            entry = QueueEntry.objects.filter(trace_id=row.trace_id, lane_id=row.lane_id)
            entry.update(slots_left=F("slots_left") + 1)
    work = (row for row in rows if row.purpose not in SOURCE_OF_PURPOSE and row.trace_id not in gold_sources)
    targets = Counter(_slot_target(row) for row in work)
    surplus = _find_surplus({target.trace_id for target in targets})
    for target, number in targets.items():
        if target.arm in _WITH_SURPLUS and target.trace_id in surplus:
            targets[target] -= _drop_surplus_slots(target.trace_id, surplus[target.trace_id], number)
    _add_arrivals({target: number for target, number in targets.items() if number}, now, given=0)


def find_returnable(trace_ids: Collection[int]) -> set[int]:
    """Return the traces that can get slots back as work: not withdrawn, and not gold."""
    active = set(Trace.objects.available().filter(pk__in=trace_ids).values_list("pk", flat=True))
    return active - find_gold_sources(active).keys()


def return_set_aside_slots(*, numbers: Mapping[int, int], now: dt.datetime) -> None:
    """Return up to this many slots of submissions that were set aside, by trace. The caller has locked the traces, and
    they are returnable."""
    aside = Assignment.objects.filter(trace__in=numbers, purpose=AssignmentPurpose.WORK, set_aside__isnull=False)
    rows: list[Assignment] = []
    taken = Counter[int]()
    for row in aside.filter(holds_slot=True).order_by("-population", "pk"):  # scheduled ones first
        if taken[row.trace_id] < numbers[row.trace_id]:
            taken[row.trace_id] += 1
            rows.append(row)
    Assignment.objects.filter(pk__in=[row.pk for row in rows]).update(holds_slot=False)
    return_slots(assignments=rows, now=now)


def restore_slots(*, assignments: Sequence[Assignment], now: dt.datetime) -> None:
    """Undo `return_set_aside_slots` for these: take a free slot back, or count as extra if none is free.

    The caller has locked the traces.
    """
    traces = {row.trace_id for row in assignments}
    free = QueueEntry.objects.open().filter(trace__in=traces, lane__arm__in=ARRIVAL_SOURCES).select_related("lane")
    entries = {
        (entry.trace_id, entry.lane.arm): entry
        for entry in free.select_for_update(no_key=True, of=("self",)).order_by("trace_id", "lane_id")
    }
    taken, holding, extra = Counter[int](), [], []
    for row in assignments:
        entry = entries.get((row.trace_id, _slot_target(row).arm))
        if entry is None or taken[entry.pk] == entry.slots_left:
            extra.append(row.pk)
        else:
            taken[entry.pk] += 1
            holding.append(row.pk)
    Assignment.objects.filter(pk__in=holding).update(holds_slot=True)
    Assignment.objects.filter(pk__in=extra).update(population=Population.EXTRA)
    for number in set(taken.values()):
        changed = [pk for pk, n in taken.items() if n == number]
        QueueEntry.objects.filter(pk__in=changed).update(slots_left=F("slots_left") - number)
    QueueEntry.objects.filter(pk__in=taken, slots=0, slots_left=0).delete()


def remove_added_slots(*, trace_id: int, since: dt.datetime, now: dt.datetime) -> None:
    """Remove slots for additional labels that were added since then and are free. The caller has locked the trace."""
    for added in AddedSlot.objects.filter(trace_id=trace_id, added_at__gte=since).order_by("-round"):
        entries = QueueEntry.objects.open().filter(trace_id=trace_id, lane__arm=SamplingSource.OPINION, slots__gt=0)
        entry = entries.select_for_update(no_key=True, of=("self",)).first()
        if entry is None:
            return
        QueueEntry.objects.filter(pk=entry.pk).update(slots=F("slots") - 1, slots_left=F("slots_left") - 1)
        QueueEntry.objects.filter(pk=entry.pk, slots=0, slots_left=0).delete()
        added.delete()


def _slot_target(row: Assignment) -> _SlotTarget:
    if row.population == Population.CHOSEN and row.lane is not None:
        group = row.lane.group
        group_id = None if group is None or group.deleted_at else group.pk
        return _SlotTarget(row.trace_id, row.project_id, row.lane.arm, row.draw_id, group_id)
    arm = SamplingSource.OPINION if row.population == Population.OPINION else SamplingSource.TOP_UP
    return _SlotTarget(row.trace_id, row.project_id, arm, row.draw_id)


def _find_surplus(trace_ids: Collection[int]) -> dict[int, int]:
    """Return, for each trace with more slots than its project's overlap, that overlap."""
    entries = QueueEntry.objects.filter(trace__in=trace_ids, lane__arm__in=WORK_SOURCES)
    above = entries.filter(slots__gt=F("trace__project__overlap"))
    return dict(above.values_list("trace_id", "trace__project__overlap"))


# Lanes whose slots count as given in the lane that they came from.
_WITH_SURPLUS = (SamplingSource.TOP_UP, SamplingSource.CHOSEN)


def _drop_surplus_slots(trace_id: int, overlap: int, limit: int) -> int:
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
    add_top_up(entry=entry, number=entry.slots_left, now=now)


def move_to_chosen(*, entry: QueueEntry, group_id: int | None, now: dt.datetime) -> None:
    """Move the remaining slots of a locked entry to the chosen traces, for everyone or one group."""
    QueueEntry.objects.filter(pk=entry.pk).update(slots_left=0)
    project_id = entry.lane.project_id
    target = _SlotTarget(entry.trace_id, project_id, SamplingSource.CHOSEN, entry.draw_id, group_id)
    _add_arrivals({target: entry.slots_left}, now, given=0)


def add_top_up(*, entry: QueueEntry, number: int, now: dt.datetime) -> None:
    target = _SlotTarget(entry.trace_id, entry.lane.project_id, SamplingSource.TOP_UP, entry.draw_id)
    _add_arrivals({target: number}, now, given=0)


_ADD_ARRIVAL = """
INSERT INTO labeling_queueentry AS e (lane_id, trace_id, draw_id, key, slots, slots_left)
VALUES {rows}
ON CONFLICT (trace_id, lane_id) DO UPDATE SET
    slots = e.slots + excluded.slots, slots_left = e.slots_left + excluded.slots_left, key = excluded.key,
    draw_id = COALESCE(excluded.draw_id, e.draw_id)"""


def _add_arrivals(targets: Mapping[_SlotTarget, int], now: dt.datetime, *, given: int) -> None:
    """Add these numbers of slots to arrival lanes. Existing entries move down to the new key, below every rater's
    position."""
    lanes: dict[tuple[int, str, int | None], int] = {}
    rows = []
    for target, number in targets.items():
        place = target.project_id, target.arm, target.group_id
        if place not in lanes:
            lanes[place] = ensure_lane(project_id=target.project_id, arm=target.arm, group_id=target.group_id).pk
        rows.append((lanes[place], target.trace_id, target.draw_id, arrival_key(now), given, number))
    rawsql.write_rows(_ADD_ARRIVAL, "(%s, %s, %s, %s, %s, %s)", rows)


_POPULATION_OF_SOURCE = {
    SamplingSource.OPINION: Population.OPINION,
    SamplingSource.CHOSEN: Population.CHOSEN,
}


def take_late_slot(*, assignment_id: int, now: dt.datetime) -> Population | None:
    """Take a free slot for a late submission, and return the population that it counts in. None if no slot is free.

    Runs inside the transaction of the caller, who has locked the assignment and writes `holds_slot` and `population`
    together with the new state (a lapsed assignment cannot hold a slot). It never waits for a claim, and never takes
    more slots than there are.
    """
    assignment = Assignment.objects.get(pk=assignment_id)
    if assignment.holds_slot:
        return Population(assignment.population)
    for _ in retry_attempts():
        arm = _take_unlocked(_open_entries(assignment))
        if arm is not None:
            return _POPULATION_OF_SOURCE.get(SamplingSource(arm), Population.SCHEDULED)
        if not _open_entries(assignment).exists():
            return None
    raise QueueIsBusy


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
    return entries.exists() or work.exclude(rater__kind=RaterKind.MACHINE).exists()


def add_slot(*, trace_id: int, round: int, now: dt.datetime, limit: int | None = None) -> bool:
    """Add a slot for an additional label, once in a round, and return whether it was added.

    `limit` replaces the project's overlap limit. Gold gets no additional labels.
    """
    with transaction.atomic():
        if not lock_active_traces(trace_ids=[trace_id]) or find_gold_sources([trace_id]):
            return False
        trace = Trace.objects.select_related("project").get(pk=trace_id)
        work = trace.queue_entries.exclude(lane__arm__in=GOLD_SOURCES)
        given = work.aggregate(slots=Sum("slots"))["slots"] or 0
        if given >= (limit or trace.project.overlap_limit):
            return False
        _, is_new = AddedSlot.objects.get_or_create(trace=trace, round=round, defaults={"added_at": now})
        if is_new:
            draw_id = trace.queue_entries.exclude(draw=None).order_by("pk").values_list("draw", flat=True).first()
            target = _SlotTarget(trace_id, trace.project_id, SamplingSource.OPINION, draw_id)
            _add_arrivals({target: 1}, now, given=1)
    return is_new


def count_initial_slots(*, trace_ids: Sequence[int]) -> dict[int, int]:
    """Return how many labels were scheduled for each trace from the start, without traces outside of work lanes."""
    parameters = {"traces": list(trace_ids), "sources": [str(source) for source in WORK_SOURCES]}
    return {trace_id: int(n) for trace_id, n in rawsql.fetch_rows(_COUNT_INITIAL_SLOTS, parameters)}


_COUNT_INITIAL_SLOTS = """
SELECT e.trace_id, SUM(e.slots) FROM labeling_queueentry e JOIN labeling_lane l ON l.id = e.lane_id
WHERE e.trace_id = ANY (%(traces)s::bigint[]) AND l.arm = ANY (%(sources)s::text[]) GROUP BY 1"""


def resize_slots(
    *, project_id: int, overlap: int, after: int, now: dt.datetime, limit: int = 500, includes_settled: bool = False
) -> list[int]:
    """Give the next traces after the id `after` this many slots, for a change of the project's overlap. Return them.

    A lower overlap removes only free slots, never an open assignment. Former gold does not become work. With
    `includes_settled`, traces that raters settled by fewer votes get additional labels too.
    """
    final: Q = Q(trace__settlement__state__in=_FINAL_STATES)
    if includes_settled:
        final &= ~Q(trace__settlement__state=SettlementState.SETTLED, trace__settlement__n_votes__lt=overlap)
    traces = Trace.objects.available().filter(project=project_id, pk__gt=after)
    ids = list(traces.order_by("pk").values_list("pk", flat=True)[:limit])
    with transaction.atomic():
        active = lock_active_traces(trace_ids=ids)
        entries = (
            QueueEntry.objects.filter(trace__in=active, lane__arm__in=WORK_SOURCES, lane__closed_at=None)
            .exclude(final)
            .exclude(slots=overlap)
            .exclude(WAS_GOLD)
        )
        keys = list(entries.select_for_update(no_key=True, of=("self",)).order_by("pk").values_list("pk", flat=True))
        left = Greatest(F("slots_left") + Value(overlap) - F("slots"), Value(0))
        QueueEntry.objects.filter(pk__in=keys).update(slots=F("slots") - F("slots_left") + left, slots_left=left)
        _drop_returned_surplus(active, overlap)
    return ids


def _drop_returned_surplus(trace_ids: Collection[int], overlap: int) -> None:
    """Drop surplus slots that were returned or chosen: they are free as well."""
    entries = QueueEntry.objects.open().filter(trace__in=trace_ids, lane__arm__in=_WITH_SURPLUS)
    entries = entries.exclude(trace__settlement__state__in=_FINAL_STATES).order_by("pk")
    for entry in entries.select_for_update(no_key=True, of=("self",)):
        dropped = _drop_surplus_slots(entry.trace_id, overlap, entry.slots_left)
        QueueEntry.objects.filter(pk=entry.pk).update(slots_left=F("slots_left") - dropped)
