"""Traces that a person puts first: who gets them, in which population, and that no slot is lost or added."""

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from labeling import queue
from labeling.models import Assignment, Lane, Project, QueueEntry, Rater, RaterGroup, Trace
from tests import factories
from tests.labeling.quality import submitted_work
from tests.labeling.queue import queues

NOW = factories.NOW


def choose(traces: list[int], group: RaterGroup | None = None) -> int:
    project = Trace.objects.get(pk=traces[0]).project_id
    return queue.choose_traces(project_id=project, trace_ids=traces, group=group, by=None, now=NOW)


def unchoose(traces: list[int]) -> int:
    project = Trace.objects.get(pk=traces[0]).project_id
    return queue.unchoose_traces(project_id=project, trace_ids=traces, by=None, now=NOW)


def make_project(**fields: object) -> Project:
    return factories.make_project(**{"gold_share": 0, "open_limit": 99, **fields})  # type: ignore[arg-type]  # no slug


@pytest.mark.fault
class SlotsStay(TestCase):
    @settings(max_examples=40)
    @given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 1)), max_size=14))
    def test_no_slot_is_lost_or_added(self, actions: list[tuple[int, int, int]]) -> None:
        project = make_project(overlap=2)
        traces = queues.fill_lane(project, 4, slots=2)
        raters = queues.make_raters(project, 2)
        group = self._replace_group(project, None, raters)
        for step, (action, place, who) in enumerate(actions):
            now, trace = NOW + dt.timedelta(seconds=step), traces[place]
            if action == 0:
                choose([trace], group if who else None)
            elif action == 1:
                unchoose([trace])
            elif action == 2:
                self._claim(raters[who], now)
            elif action == 3:
                opened = Assignment.objects.open().filter(rater=raters[who]).first()
                if opened:
                    queue.release_assignment(assignment_id=opened.pk, now=now, reason="x", by=None)
            elif action == 5:
                group = self._replace_group(project, group, raters)
            else:
                queue.resize_slots(project_id=project.pk, overlap=1 + who, after=0, now=now)
                Project.objects.filter(pk=project.pk).update(overlap=1 + who)
            assert queues.is_balanced(traces), (action, place, who)

    def _replace_group(self, project: Project, group: RaterGroup | None, raters: list[Rater]) -> RaterGroup:
        if group:
            queue.delete_group(group=group, by=None, now=NOW)
        return queue.save_group(project=project, name="Geometry", raters=raters[:1], by=None, now=NOW)

    def _claim(self, rater: Rater, now: dt.datetime) -> None:
        try:
            queue.claim_trace(rater_id=rater.pk, now=now, opened=True)
        except queue.QueueRefusal:
            return


pytestmark = pytest.mark.django_db


def test_chosen_traces_come_first_and_are_recorded_as_chosen() -> None:
    project = make_project()
    traces = queues.fill_lane(project, 6)
    assert choose([traces[4]]) == 1
    rater = factories.make_rater(project)
    first = queue.claim_trace(rater_id=rater.pk, now=NOW, opened=True)
    second = queue.claim_trace(rater_id=rater.pk, now=NOW, opened=True)
    assert (first.trace_id, first.arm, second.arm) == (traces[4], "chosen", "uniform")
    populations = Assignment.objects.order_by("pk").values_list("population", flat=True)
    assert list(populations) == ["chosen", "scheduled"]


def test_a_group_alone_gets_its_traces() -> None:
    project = make_project()
    traces = queues.fill_lane(project, 2)
    skilled, other = queues.make_raters(project, 2)
    group = queue.save_group(project=project, name="Geometry", raters=[skilled], by=None, now=NOW)
    choose(traces, group)
    with pytest.raises(queue.NothingLeft) as refused:
        queue.claim_trace(rater_id=other.pk, now=NOW)
    assert refused.value.code == "kept_for_others"
    assert queue.claim_trace(rater_id=skilled.pk, now=NOW, opened=True).trace_id in traces
    queue.save_group(project=project, name="Geometry", raters=[other], by=None, now=NOW)
    assert queue.claim_trace(rater_id=other.pk, now=NOW, opened=True).trace_id in traces
    with pytest.raises(queue.NothingLeft):
        queue.claim_trace(rater_id=skilled.pk, now=NOW)


def test_a_returned_chosen_trace_stays_with_its_group() -> None:
    project = make_project()
    traces = queues.fill_lane(project, 1)
    one, two, other = queues.make_raters(project, 3)
    group = queue.save_group(project=project, name="Geometry", raters=[one, two], by=None, now=NOW)
    choose(traces, group)
    claim = queue.claim_trace(rater_id=one.pk, now=NOW, opened=True)
    queue.release_assignment(assignment_id=claim.assignment_id, now=NOW, reason="x", by=None)
    with pytest.raises(queue.NothingLeft):
        queue.claim_trace(rater_id=other.pk, now=NOW)
    assert queue.claim_trace(rater_id=two.pk, now=NOW).trace_id == traces[0]


def test_traces_of_a_deleted_group_are_for_everyone() -> None:
    """One trace waits and one is open. Once the open one is returned, it comes first for everyone. The name can be used
    again."""
    project = make_project()
    traces = queues.fill_lane(project, 2)
    one, other = queues.make_raters(project, 2)
    group = queue.save_group(project=project, name="Geometry", raters=[one], by=None, now=NOW)
    choose(traces, group)
    claim = queue.claim_trace(rater_id=one.pk, now=NOW, opened=True)
    assert queue.delete_group(group=group, by=None, now=NOW) == 1
    assert queue.claim_trace(rater_id=other.pk, now=NOW, opened=True).trace_id != claim.trace_id
    queue.release_assignment(assignment_id=claim.assignment_id, now=NOW, reason="x", by=None)
    assert queue.claim_trace(rater_id=other.pk, now=NOW).trace_id == claim.trace_id
    assert queues.is_balanced(traces)
    again = queue.save_group(project=project, name="Geometry", raters=[one], by=None, now=NOW)
    assert again != group


def test_a_prefetched_trace_can_be_chosen_for_someone_else() -> None:
    project = make_project()
    traces = queues.fill_lane(project, 1)
    holder, wanted = queues.make_raters(project, 2)
    queue.claim_trace(rater_id=holder.pk, now=NOW)
    assert choose(traces, queue.ensure_personal_group(rater=wanted, now=NOW)) == 1
    assert queue.claim_trace(rater_id=wanted.pk, now=NOW).trace_id == traces[0]


def test_undone_choice_leaves_the_queue_as_it_was() -> None:
    project = make_project()
    traces = queues.fill_lane(project, 3, slots=2)
    columns = ("lane", "trace", "key", "slots", "slots_left")
    before = set(QueueEntry.objects.open().values_list(*columns))
    group = queue.ensure_personal_group(rater=factories.make_rater(project), now=NOW)
    choose(traces[:2])
    choose(traces[1:], group)
    assert unchoose(traces) == 3
    assert set(QueueEntry.objects.open().values_list(*columns)) == before
    assert Lane.objects.filter(arm="chosen").count() == 2


def test_gold_and_withdrawn_traces_are_not_chosen() -> None:
    project = make_project()
    gold, gone = queues.fill_lane(project, 1, arm="gold")[0], queues.fill_lane(project, 1)[0]
    queue.withdraw_traces(trace_ids=[gone], now=NOW, reason="x", by=None)
    assert choose([gold, gone]) == 0


def test_labels_of_chosen_traces_settle_them_and_stay_out_of_agreement() -> None:
    project = make_project(overlap=2)
    raters = queues.make_raters(project, 2)
    trace = factories.make_trace(project)
    for rater in raters:
        submitted_work.submit_trace(rater, trace, [1, 1, 1], population="chosen")
    submitted_work.refresh_quality(now=NOW + dt.timedelta(minutes=1))
    trace.refresh_from_db()
    assert trace.settlement.state == "settled"
    assert not trace.tallies.exists()
