"""Gold is never served as work, and retired gold is not served at all."""

import datetime as dt

import pytest

from labeling import queue
from labeling.models import Assignment, Gold, QueueEntry, Settlement, Trace
from labeling.models.gold import GoldUse
from labeling.quality.adjudication import CannotDecide, send_back_trace
from labeling.quality.gold import enqueue_gold, make_gold, move_gold, retire_gold
from labeling.quality.resolve import resolve_traces
from tests import factories
from tests.labeling.quality import submitted_work
from tests.labeling.queue import queues

pytestmark = pytest.mark.django_db
HOUR = dt.timedelta(hours=1)


@pytest.fixture
def trace(now: dt.datetime) -> Trace:
    """A trace of work with two labels from the start."""
    trace = factories.make_trace(factories.make_project(overlap=2))
    queue.enqueue(project_id=trace.project_id, arm="uniform", trace_ids=[trace.pk], slots=2, now=now)
    return trace


def become_gold(trace: Trace, now: dt.datetime, use: GoldUse = GoldUse.HIDDEN) -> Gold:
    gold = make_gold(trace=trace, use=use, accepted_first_errors=[1], by=None, now=now)
    enqueue_gold(project_id=trace.project_id, use=use, trace_ids=[trace.pk], now=now)
    return gold


def left(trace: Trace) -> dict[str, int]:
    """Return the remaining slots by lane."""
    return dict(QueueEntry.objects.filter(trace=trace, is_open=True).values_list("lane__arm", "slots_left"))


@pytest.mark.parametrize(("use", "expected"), [(GoldUse.HIDDEN, {"gold": 50}), (GoldUse.CANARY, {})])
def test_returned_work_that_became_gold_is_not_work(
    use: GoldUse, expected: dict[str, int], trace: Trace, now: dt.datetime
) -> None:
    for is_opened in (True, False):
        queue.claim_trace(
            rater_id=factories.make_rater(trace.project).pk, now=now, opened=is_opened, chance=queues.UNIFORM
        )
    become_gold(trace, now, use)
    assert queue.lapse_expired_leases(now=now + HOUR) == 2
    assert left(trace) == expected


@pytest.mark.parametrize("purpose", ["gold", "screening"])
def test_returned_gold_that_was_retired_is_not_served(purpose: str, now: dt.datetime) -> None:
    project = factories.make_project()
    (pk,) = queues.fill_lane(project, 1, arm=purpose, slots=50)
    queues.fill_lane(project, 1)
    stage = "screening" if purpose == "screening" else "working"
    claim = queue.claim_trace(rater_id=factories.make_rater(project, stage=stage).pk, now=now, chance=queues.GOLD)
    assert claim.trace_id == pk
    retire_gold(gold=Gold.objects.select_related("trace").get(), by=None, now=now)
    queue.release_assignment(assignment_id=claim.assignment_id, now=now, reason="page closed", by=None)
    assert left(Trace.objects.get(pk=pk)) == {}


def test_gold_of_another_use_returns_only_its_own_slots(trace: Trace, now: dt.datetime) -> None:
    hidden = become_gold(trace, now)
    rater = factories.make_rater(trace.project)
    lane = QueueEntry.objects.get(lane__arm="gold").lane
    made = factories.make_assignment(rater, trace, purpose="gold", lane=lane)
    move_gold(gold=hidden, use=GoldUse.TRAINING, by=None, now=now)
    enqueue_gold(project_id=trace.project_id, use=GoldUse.TRAINING, trace_ids=[trace.pk], now=now)
    queue.release_assignment(assignment_id=made.pk, now=now, reason="skipped", by=None)
    assert set(left(trace)) == {"training"}


@pytest.mark.parametrize("is_retired", [False, True])
def test_overlap_change_does_not_turn_gold_into_work(is_retired: bool, trace: Trace, now: dt.datetime) -> None:
    gold = become_gold(trace, now)
    if is_retired:
        retire_gold(gold=gold, by=None, now=now)
    queue.resize_slots(project_id=trace.project_id, overlap=3, after=0, now=now)
    assert left(trace) == ({} if is_retired else {"gold": 50})


def test_reinstated_gold_has_its_remaining_slots(trace: Trace, now: dt.datetime) -> None:
    become_gold(trace, now)
    queues.fill_lane(trace.project, 1)
    claim = queue.claim_trace(rater_id=factories.make_rater(trace.project).pk, now=now, opened=True, chance=queues.GOLD)
    queues.submit_assignment(claim.assignment_id, now)
    queue.withdraw_traces(trace_ids=[trace.pk], now=now, reason="undone", by=None)
    assert left(trace) == {}
    queue.reinstate_traces(trace_ids=[trace.pk], now=now, reason="imported again", by=None)
    assert left(trace) == {"gold": 49}


def test_gold_gets_no_further_label(trace: Trace, now: dt.datetime) -> None:
    lead = factories.make_user("lead")
    for ratings in ([1, 1, 1], [1, -1]):
        submitted_work.submit_trace(factories.make_rater(trace.project), trace, ratings)
    gold = become_gold(trace, now)
    resolve_traces(project_id=trace.project_id, trace_ids=[trace.pk], now=now)
    assert Settlement.objects.get().state == "contested"
    with pytest.raises(CannotDecide):
        send_back_trace(trace_id=trace.pk, by=lead, now=now)
    assert left(trace) == {"gold": 50}
    retire_gold(gold=gold, by=lead, now=now)
    send_back_trace(trace_id=trace.pk, by=lead, now=now)
    assert left(trace) == {"opinion": 1}
    assert not Assignment.objects.filter(holds_slot=False).exists()
