"""The order in which hidden gold is served."""

import datetime as dt

import pytest

from labeling import queue
from labeling.models import Project, QueueEntry, Trace
from labeling.models.gold import GoldUse
from labeling.models.queue import SamplingSource
from labeling.quality.gold import arrange_hidden_gold, enqueue_gold, make_gold
from tests import factories

pytestmark = pytest.mark.django_db
NOW = factories.NOW


def gold(project: Project, *accepted: int | None) -> Trace:
    trace = factories.make_trace(project)
    make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=accepted, by=None, now=NOW)
    enqueue_gold(project_id=project.pk, use=GoldUse.HIDDEN, trace_ids=[trace.pk], now=NOW)
    return trace


def order(project: Project) -> list[int]:
    entries = QueueEntry.objects.filter(lane__project=project).exclude(lane__arm=SamplingSource.UNIFORM)
    return list(entries.order_by("-key", "-trace_id").values_list("trace_id", flat=True))


@pytest.mark.fault
def test_hidden_gold_order_is_balanced_in_every_prefix_and_stable() -> None:
    project = factories.make_project()
    sound = {gold(project, None).pk for _ in range(9)}
    for place in (0, 1, 2):
        gold(project, place)
    assert arrange_hidden_gold(project_id=project.pk, now=NOW)
    assert sum(trace in sound for trace in order(project)[:4]) == 1
    assert arrange_hidden_gold(project_id=project.pk, now=NOW) == 0


def test_reordering_hidden_gold_neither_repeats_nor_skips_traces() -> None:
    """Raters start at the top of the new order, and skip traces they had before."""
    project = factories.make_project(gold_share=1)
    factories.make_entry(factories.make_lane(project), factories.make_trace(project))
    traces = {gold(project, place).pk for place in (None, None, None, 0, 1, 2)}
    rater, met = factories.make_rater(project), []
    for number in range(6):
        later = NOW + dt.timedelta(minutes=number)
        if number in (2, 4):
            assert queue.reorder_lane(
                project_id=project.pk, arm=SamplingSource.GOLD, trace_ids=order(project)[::-1], now=later
            )
        claim = queue.claim_trace(rater_id=rater.pk, now=later, opened=True, chance=0.0)
        met.append(claim.trace_id)
        queue.release_assignment(assignment_id=claim.assignment_id, now=later, reason="next", by=rater.user)
    assert sorted(met) == sorted(traces)


def test_reordering_handles_traces_added_at_the_same_time() -> None:
    project = factories.make_project()
    lane = factories.make_lane(project, "screening")
    first, second = (factories.make_entry(lane, factories.make_trace(project), key=7).trace_id for _ in range(2))
    assert order(project) == [second, first]
    assert (
        queue.reorder_lane(project_id=project.pk, arm=SamplingSource.SCREENING, trace_ids=[first, second], now=NOW) == 2
    )
    assert order(project) == [first, second]


def test_gold_leaves_the_work_lanes_and_canaries_leave_all() -> None:
    project = factories.make_project()
    lane = factories.make_lane(project)
    for use, left in ((GoldUse.TRAINING, "training"), (GoldUse.CANARY, None)):
        entry = factories.make_entry(lane, factories.make_trace(project))
        enqueue_gold(project_id=project.pk, use=use, trace_ids=[entry.trace_id], now=NOW)
        found = QueueEntry.objects.filter(trace=entry.trace_id, is_open=True).values_list("lane__arm", flat=True)
        assert list(found) == ([left] if left else [])
