"""How traces are added to lanes and removed from them."""

import datetime as dt

import pytest
from django.db.models import Sum

from labeling import queue
from labeling.models import Assignment, Lane, QueueEntry, Trace
from tests import factories
from tests.labeling.queue import queues

pytestmark = pytest.mark.django_db


def test_enqueue_again_adds_nothing(now: dt.datetime) -> None:
    project = factories.make_project()
    ids = [trace.pk for trace in queues.make_traces(project, 3)]
    added = [queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=ids, slots=2, now=now) for _ in range(2)]
    assert added == [3, 0]
    assert QueueEntry.objects.aggregate(Sum("slots_left"))["slots_left__sum"] == 6


def test_uniform_lane_has_a_fixed_shuffle(now: dt.datetime) -> None:
    project = factories.make_project()
    ids = [trace.pk for trace in queues.make_traces(project, 12)]
    queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=ids[:6], slots=2, now=now)
    queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=ids[6:], slots=2, now=now)
    orders = [queues.claim_all(rater, now) for rater in queues.make_raters(project, 2)]
    assert orders[0] == orders[1]
    assert sorted(orders[0]) == ids
    assert orders[0] not in (ids, ids[::-1])


def test_enqueue_new_gives_the_same_keys_as_enqueue(now: dt.datetime) -> None:
    project = factories.make_project()
    ids = [trace.pk for trace in queues.make_traces(project, 5)]
    queue.enqueue_new(project_id=project.pk, arm="uniform", trace_ids=ids, slots=2, now=now)
    columns = ("trace", "lane__arm", "key", "slots", "slots_left", "is_open", "draw")
    new = set(QueueEntry.objects.values_list(*columns))
    QueueEntry.objects.all().delete()
    queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=ids, slots=2, now=now)
    assert new == set(QueueEntry.objects.values_list(*columns))


def test_enqueue_new_resets_exhausted_cursors(now: dt.datetime) -> None:
    project = factories.make_project()
    rater = factories.make_rater(project)
    first, second = (trace.pk for trace in queues.make_traces(project, 2))
    queue.enqueue_new(project_id=project.pk, arm="uniform", trace_ids=[first], slots=1, now=now)
    assert queues.claim_all(rater, now) == [first]
    queue.enqueue_new(project_id=project.pk, arm="uniform", trace_ids=[second], slots=1, now=now)
    assert queues.claim_all(rater, now) == [second]


def test_enqueue_keeps_the_order_of_a_policy_lane(now: dt.datetime) -> None:
    project = factories.make_project()
    ids = [trace.pk for trace in queues.make_traces(project, 4)][::-1]
    queue.enqueue(project_id=project.pk, arm="policy", trace_ids=ids[:2], slots=1, now=now)
    queue.enqueue(project_id=project.pk, arm="policy", trace_ids=ids[2:], slots=1, now=now + dt.timedelta(seconds=1))
    assert queues.claim_all(factories.make_rater(project), now) == ids


def test_policy_lane_takes_untouched_traces(now: dt.datetime) -> None:
    project = factories.make_project(overlap=2)
    begun, untouched = queues.fill_lane(project, 2, slots=2)
    queue.claim_trace(rater_id=factories.make_rater(project).pk, now=now, chance=queues.UNIFORM)
    added = queue.enqueue(
        project_id=project.pk, arm="policy", generation=1, trace_ids=[begun, untouched], slots=2, now=now
    )
    assert added == 1
    assert set(QueueEntry.objects.values_list("trace", "lane__arm", "slots_left")) == {
        (begun, "uniform", 1),
        (untouched, "policy", 2),
    }
    assert queues.is_balanced([begun, untouched])


def test_enqueue_ignores_withdrawn_traces(now: dt.datetime) -> None:
    project = factories.make_project()
    ids = [trace.pk for trace in queues.make_traces(project, 2)]
    queue.withdraw_traces(trace_ids=ids[:1], now=now, reason="broken text", by=None)
    assert queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=ids, slots=1, now=now) == 1


def test_enqueue_points_entries_to_their_draws(now: dt.datetime) -> None:
    project = factories.make_project()
    trace = factories.make_trace(project)
    draw = project.draws.create(batch=1, rank=1, trace=trace, arm="policy", q=0.5, pool_size=2, n_left=2, drawn_at=now)
    queue.enqueue(
        project_id=project.pk, arm="policy", trace_ids=[trace.pk], slots=2, now=now, draws={trace.pk: draw.pk}
    )
    first, second = queues.make_raters(project, 2)
    claim = queue.claim_trace(rater_id=first.pk, now=now, opened=True)
    queue.release_assignment(assignment_id=claim.assignment_id, now=now, reason="skipped", by=None)
    again = queue.claim_trace(rater_id=second.pk, now=now)
    assert (claim.draw_id, again.draw_id, again.arm) == (draw.pk, draw.pk, "top_up")


def test_withdrawn_trace_is_not_assigned_but_can_be_finished(now: dt.datetime) -> None:
    project = factories.make_project()
    (trace,) = queues.fill_lane(project, 1, slots=3)
    opened, held = (
        queue.claim_trace(rater_id=rater.pk, now=now, opened=is_opened)
        for rater, is_opened in zip(queues.make_raters(project, 2), (True, False), strict=True)
    )
    assert queue.withdraw_traces(trace_ids=[trace], now=now, reason="broken text", by=None) == 1
    states = dict(Assignment.objects.values_list("pk", "state"))
    assert states == {opened.assignment_id: "opened", held.assignment_id: "released"}
    queue.release_assignment(assignment_id=opened.assignment_id, now=now, reason="skipped", by=None)
    assert not QueueEntry.objects.filter(is_open=True).exists()
    assert Trace.objects.get().withdrawn_reason == "broken text"
    assert queue.withdraw_traces(trace_ids=[trace], now=now, reason="again", by=None) == 0


def test_closed_lane_moves_begun_traces_to_top_up(now: dt.datetime) -> None:
    project = factories.make_project()
    begun, untouched = queues.fill_lane(project, 2, arm="policy", slots=2, generation=1)
    first, second = queues.make_raters(project, 2)
    queues.submit_assignment(queue.claim_trace(rater_id=first.pk, now=now, opened=True).assignment_id, now)
    queue.close_lane(lane_id=Lane.objects.get(arm="policy").pk, now=now, by=None)
    later = now + dt.timedelta(seconds=1)
    claims = [queue.claim_trace(rater_id=second.pk, now=later, opened=True, chance=queues.POLICY) for _ in range(2)]
    assert [(claim.trace_id, claim.arm) for claim in claims] == [(begun, "top_up"), (untouched, "uniform")]
    assert queues.is_balanced([begun, untouched])


def test_depth_counts_open_traces_up_to_a_limit(now: dt.datetime) -> None:
    project = factories.make_project()
    queues.fill_lane(project, 3)
    queues.fill_lane(project, 1, arm="gold")
    queue.claim_trace(rater_id=factories.make_rater(project).pk, now=now, chance=queues.UNIFORM)
    depths = {depth.arm: (depth.n_open, depth.is_more) for depth in queue.lane_depths(project_id=project.pk, at_most=2)}
    assert depths == {"uniform": (2, False), "gold": (1, False)}
    depths = {depth.arm: (depth.n_open, depth.is_more) for depth in queue.lane_depths(project_id=project.pk, at_most=1)}
    assert depths["uniform"] == (1, True)
