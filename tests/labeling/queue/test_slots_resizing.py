"""A change of the overlap resizes free slots, and leaves open and settled traces unchanged."""

import datetime as dt

import pytest

from labeling import queue
from labeling.models import Project, QueueEntry, Settlement, Trace
from labeling.models.queue import Lane
from tests import factories
from tests.labeling.queue import queues

pytestmark = pytest.mark.django_db
NOW = factories.NOW


def entry(lane: Lane, *, slots: int, left: int, state: str = "") -> Trace:
    trace = factories.make_trace(lane.project)
    made = factories.make_entry(lane, trace, slots=slots)
    QueueEntry.objects.filter(pk=made.pk).update(slots_left=left)
    if state:
        Settlement.objects.create(trace=trace, project=lane.project, state=state, changed_at=factories.NOW)
    return trace


@pytest.mark.parametrize(
    ("slots", "left", "state", "overlap", "expected"),
    [
        (2, 2, "", 3, (3, 3)),
        (2, 1, "", 3, (3, 2)),
        (2, 0, "reading", 3, (3, 1)),
        (2, 0, "asked", 3, (3, 1)),
        (2, 0, "settled", 3, (2, 0)),
        (2, 0, "contested", 3, (2, 0)),
        (2, 0, "decided", 3, (2, 0)),
        (3, 3, "", 1, (1, 1)),
        (3, 1, "reading", 1, (2, 0)),  # two are open or submitted: they count
        (3, 0, "reading", 2, (3, 0)),
    ],
)
def test_resize_changes_only_free_slots(
    slots: int, left: int, state: str, overlap: int, expected: tuple[int, int]
) -> None:
    lane = factories.make_lane(factories.make_project())
    trace = entry(lane, slots=slots, left=left, state=state)
    queue.resize_slots(project_id=lane.project_id, overlap=overlap, after=0, now=factories.NOW)
    assert QueueEntry.objects.values_list("slots", "slots_left").get(trace=trace) == expected


def test_resize_ignores_gold_and_other_projects_and_works_in_chunks() -> None:
    project = factories.make_project()
    gold, uniform = factories.make_lane(project, arm="gold"), factories.make_lane(project)
    elsewhere = factories.make_lane(factories.make_project())
    entry(gold, slots=50, left=50)
    entry(elsewhere, slots=2, left=2)
    for _ in range(3):
        entry(uniform, slots=2, left=2)
    after = 0
    pieces: list[int] = []
    while done := queue.resize_slots(project_id=project.pk, overlap=4, after=after, now=factories.NOW, limit=2):
        after = max(done)
        pieces.append(QueueEntry.objects.filter(slots=4).count())
    assert pieces == [1, 3]
    assert sorted(QueueEntry.objects.values_list("slots", flat=True)) == [2, 4, 4, 4, 50]


@pytest.mark.parametrize("lapses_before", [True, False])
def test_returned_slot_above_the_overlap_is_dropped(lapses_before: bool) -> None:
    """Two of three raters have submitted. If the third one's assignment lapses, before or after the overlap becomes
    two, no third label is scheduled."""
    project = factories.make_project(overlap=3)
    (trace,) = queues.fill_lane(project, 1, slots=3)
    claims = [queue.claim_trace(rater_id=each.pk, now=NOW, opened=True) for each in queues.make_raters(project, 3)]
    for claim in claims[:2]:
        queues.submit_assignment(claim.assignment_id, NOW)
    for lapses in (lapses_before, not lapses_before):
        if lapses:
            assert queue.lapse_expired_leases(now=NOW + dt.timedelta(hours=1)) == 1
        else:
            Project.objects.update(overlap=2)
            queue.resize_slots(project_id=project.pk, overlap=2, after=0, now=NOW)
    assert not QueueEntry.objects.filter(is_open=True).exists()
    assert queues.is_balanced([trace])
    queue.resize_slots(project_id=project.pk, overlap=3, after=0, now=NOW)
    assert sum(QueueEntry.objects.values_list("slots_left", flat=True)) == 1


def test_resize_ignores_withdrawn_traces() -> None:
    lane = factories.make_lane(factories.make_project())
    trace = entry(lane, slots=2, left=2)
    queue.withdraw_traces(trace_ids=[trace.pk], now=factories.NOW + dt.timedelta(1), reason="twice", by=None)
    queue.resize_slots(project_id=lane.project_id, overlap=5, after=0, now=factories.NOW)
    assert QueueEntry.objects.get(trace=trace).slots_left == 0
