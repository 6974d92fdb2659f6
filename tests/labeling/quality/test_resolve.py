"""Resolution of traces: settled, additional label requested, or contested, with the reason."""

import datetime as dt
from functools import partial
from typing import Any

import pytest

from events.models import Event
from labeling import queue
from labeling.models import Consensus, FirstErrorReport, Project, QueueEntry, Settlement, Trace
from labeling.quality import consensus, settlements
from labeling.quality.adjudication import send_back_trace
from labeling.quality.resolve import resolve_traces
from tests import factories
from tests.concurrency import run_at_once
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db
NOW = factories.NOW
SOUND = [1, 1, 1]


def make(limit: int = 5, **fields: Any) -> tuple[Project, Trace]:
    project = factories.make_project(overlap=2, overlap_limit=limit, **fields)
    trace = factories.make_trace(project, ["One.", ["Two.", "Too."], "Three."])
    queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=[trace.pk], slots=2, now=NOW)
    return project, trace


def read(project: Project, trace: Trace, ratings: list[int], **fields: Any) -> Settlement:
    """Submit as a new rater, and resolve the trace."""
    submitted_work.submit_trace(factories.make_rater(project), trace, ratings, **fields)
    return settled(project, trace)


def settled(project: Project, trace: Trace) -> Settlement:
    resolve_traces(project_id=project.pk, trace_ids=[trace.pk], now=NOW)
    row = Settlement.objects.get(pk=trace.pk)
    assert not row.is_due
    assert settlements.RESOLUTION_REASONS[row.reason]
    return row


def opinions(trace: Trace) -> int:
    return sum(QueueEntry.objects.filter(trace=trace, lane__arm="opinion").values_list("slots", flat=True))


def test_two_agreeing_submissions_settle() -> None:
    project, trace = make()
    assert read(project, trace, SOUND).state == "reading"
    row = read(project, trace, SOUND)
    assert (row.state, row.reason, row.n_votes, row.consensus_revision) == ("settled", "all_agree", 2, 1)
    found = consensus.current_revisions(project_id=project.pk).get()
    assert (found.first_error, found.confidence, found.source) == (None, 1.0, "raters")
    assert found.labels == [[0, 0, 1, 1.0, 2], [1, 0, 1, 1.0, 2], [2, 0, 1, 1.0, 2]]
    assert opinions(trace) == 0


def test_third_label_is_requested_when_two_differ_and_the_majority_settles() -> None:
    project, trace = make()
    read(project, trace, SOUND)
    row = read(project, trace, [-1])
    assert (row.state, row.reason, row.differs_at, opinions(trace)) == ("asked", "differ", 0, 1)
    assert not consensus.current_revisions(project_id=project.pk).exists()
    row = read(project, trace, [-1], population="opinion")
    assert (row.state, row.reason) == ("settled", "most_agree")
    found = consensus.current_revisions(project_id=project.pk).get()
    assert (found.first_error, found.n_votes) == (0, 3)
    # Ratings after the error, by the rater who continued, are not labels.
    assert found.labels == [[0, 0, -1, pytest.approx(2 / 3), 3]]


def test_trace_is_contested_at_the_limit_and_logged_once() -> None:
    project, trace = make(limit=3)
    read(project, trace, SOUND)
    read(project, trace, [-1])
    row = read(project, trace, [1, 1, -1], population="opinion")
    assert (row.state, row.reason, row.n_readings, opinions(trace)) == ("contested", "differ_at_limit", 3, 1)
    row = read(project, trace, SOUND, population="extra")
    assert (row.state, row.n_readings) == ("contested", 4)
    assert Event.objects.filter(what="trace.contested").count() == 1


def test_late_submission_votes() -> None:
    project, trace = make()
    read(project, trace, SOUND)
    read(project, trace, [-1])
    assert read(project, trace, SOUND, population="extra").state == "settled"


def test_late_submission_does_not_replace_the_awaited_one() -> None:
    """A lease lapsed, another rater has the trace, and the first rater still submits and differs. No additional label
    is requested before the other rater has submitted."""
    project, trace = make()
    lapsed, _other = (
        queue.claim_trace(rater_id=each.pk, now=NOW, opened=True) for each in submitted_work.make_raters(project, 2)
    )
    queue.release_assignment(assignment_id=lapsed.assignment_id, now=NOW, reason="took long", by=None)
    submitted_work.submit_trace(factories.make_rater(project), trace, SOUND)
    row = read(project, trace, [-1], population="extra")
    assert (row.state, row.reason, row.n_votes, opinions(trace)) == ("reading", "first_readings", 2, 0)
    row = read(project, trace, [1, 1, -1])
    assert (row.state, row.reason, opinions(trace)) == ("asked", "differ", 1)
    row = read(project, trace, SOUND, population="extra")
    assert (row.state, opinions(trace)) == ("asked", 1)


@pytest.mark.parametrize(("state", "second"), [("contested", [-1]), ("settled", SOUND)])
def test_higher_overlap_does_not_reopen_finished_traces(state: str, second: list[int]) -> None:
    """The overlap is now three. A trace contested after two labels gets one more; a trace settled by two stays settled
    when one of them is corrected without a change."""
    project, trace = make(limit=2)
    read(project, trace, SOUND)
    assert read(project, trace, second).state == state
    Project.objects.update(overlap=3, overlap_limit=5)
    queue.resize_slots(project_id=project.pk, overlap=3, after=0, now=NOW)
    Settlement.objects.update(is_due=True)
    row = settled(project, trace)
    assert (row.state, opinions(trace)) == (("asked", 1) if state == "contested" else ("settled", 0))


def test_lower_overlap_settles_waiting_traces() -> None:
    project, trace = make()
    Project.objects.update(overlap=3)
    queue.resize_slots(project_id=project.pk, overlap=3, after=0, now=NOW)
    for _ in range(2):
        read(project, trace, SOUND)
    submitted_work.give_up(factories.make_rater(project), trace, [1])
    assert settled(project, trace).reason == "cut_off"
    Project.objects.update(overlap=2)
    settlements.mark_unsettled_due(project_id=project.pk, now=NOW)
    row = settled(project, trace)
    assert (row.state, row.reason) == ("settled", "all_agree")


def test_lower_overlap_still_waits_for_a_requested_submission() -> None:
    """Three submissions differ, a fourth is requested, and then the overlap is lowered to two. The fourth is still
    awaited: no one decides before it, and no additional label is requested."""
    project, trace = make()
    Project.objects.update(overlap=3)
    queue.resize_slots(project_id=project.pk, overlap=3, after=0, now=NOW)
    for ratings in (SOUND, [-1], [1, 1, -1]):
        row = read(project, trace, ratings)
    QueueEntry.objects.filter(lane__arm="uniform").update(slots_left=0)  # a claim takes one slot
    assert (row.state, opinions(trace)) == ("asked", 1)
    Project.objects.update(overlap=2)
    queue.resize_slots(project_id=project.pk, overlap=2, after=0, now=NOW)
    settlements.mark_unsettled_due(project_id=project.pk, now=NOW)
    row = settled(project, trace)
    assert (row.state, row.reason, opinions(trace)) == ("asked", "differ", 1)


def test_requests_continue_up_to_the_limit_after_a_request_by_a_person() -> None:
    """After the requested submission, the votes still differ: contested only at the limit."""
    project, trace = make(limit=3)
    for ratings in (SOUND, [-1], [1, 1, -1]):
        row = read(project, trace, ratings)
    assert (row.state, row.reason) == ("contested", "differ_at_limit")
    send_back_trace(trace_id=trace.pk, by=factories.make_user(), now=NOW)
    row = read(project, trace, SOUND)
    assert (row.state, opinions(trace)) == ("contested", 2)
    Project.objects.update(overlap_limit=5)
    settlements.mark_unsettled_due(project_id=project.pk, now=NOW)
    row = settled(project, trace)
    assert (row.state, row.reason, opinions(trace)) == ("asked", "differ", 3)
    assert settled(project, trace) == row


def test_censored_submissions_are_replaced_and_bad_problems_contested() -> None:
    project, trace = make()
    read(project, trace, SOUND)
    submitted_work.give_up(factories.make_rater(project), trace, [1])
    row = settled(project, trace)
    assert (row.state, row.reason, row.n_votes) == ("asked", "cut_off", 1)
    other = factories.make_trace(project)
    Settlement.objects.all().delete()
    for rater in submitted_work.make_raters(project, 2):
        submitted_work.report_problem(rater, other)
    row = settled(project, other)
    assert (row.state, row.reason) == ("contested", "bad_problem")


def test_correction_makes_a_new_revision() -> None:
    project, trace = make()
    first, second = submitted_work.make_raters(project, 2)
    one = submitted_work.submit_trace(first, trace, [-1])
    two = submitted_work.submit_trace(second, trace, [-1])
    assert settled(project, trace).consensus_revision == 1
    submitted_work.correct_step(one, 0, 1, more={1: 1, 2: 1})
    assert settled(project, trace).state == "asked"
    assert not consensus.current_revisions(project_id=project.pk).exists()
    submitted_work.correct_step(two, 0, 1, more={1: 1, 2: 1})
    row = settled(project, trace)
    assert (row.state, row.consensus_revision) == ("settled", 2)
    assert [each.first_error for each in Consensus.objects.filter(trace=trace).order_by("-revision")] == [None, 0]
    assert list(FirstErrorReport.objects.values_list("first_error", "revision")) == [(None, 2), (None, 2)]


def test_same_submissions_make_no_new_revision() -> None:
    project, trace = make()
    read(project, trace, SOUND)
    read(project, trace, SOUND)
    Settlement.objects.update(is_due=True)
    assert settled(project, trace).consensus_revision == 1
    assert Consensus.objects.count() == 1


def test_every_step_protocol_labels_by_majority() -> None:
    project, trace = make(protocol="every_step")
    read(project, trace, [1, -1, 1])
    read(project, trace, [1, -1, 0])
    found = consensus.current_revisions(project_id=project.pk).get()
    assert found.first_error == 1
    assert found.labels == [[0, 0, 1, 1.0, 2], [1, 0, -1, 1.0, 2]]


def test_machines_and_assisted_submissions_do_not_vote() -> None:
    project, trace = make()
    read(project, trace, SOUND)
    row = read(project, trace, SOUND, is_assisted=True)
    assert (row.state, row.n_readings) == ("reading", 1)


@pytest.mark.usefixtures("real_connections")
def test_concurrent_resolution_requests_one_submission(now: dt.datetime) -> None:
    project, trace = make()
    for ratings in (SOUND, [-1]):
        submitted_work.submit_trace(factories.make_rater(project), trace, ratings)
    look = partial(resolve_traces, project_id=project.pk, trace_ids=[trace.pk], now=now)
    add = partial(queue.add_slot, trace_id=trace.pk, round=2, now=now)
    outcomes = run_at_once(look, look, add, look, add, look)
    assert not [each for each in outcomes if isinstance(each, Exception)], outcomes
    assert opinions(trace) == 1
    settled(project, trace) if Settlement.objects.get(pk=trace.pk).is_due else None
    assert Settlement.objects.get(pk=trace.pk).state == "asked"
