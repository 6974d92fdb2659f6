"""Adjudication: decisions are final until the trace is sent back."""

import datetime as dt
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from accounts.models import User
from events.models import Event
from labeling import queue
from labeling.models import AddedSlot, Consensus, ProjectStats, QueueEntry, Settlement, Trace
from labeling.quality import consensus, project_stats, settlements
from labeling.quality.adjudication import CannotDecide, decide_trace, list_contested, send_back_trace
from labeling.quality.resolve import resolve_traces
from tests import factories
from tests.concurrency import run_at_once
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db
NOW = factories.NOW
LATER = NOW + dt.timedelta(minutes=1)


@contextmanager
def refuses(code: str) -> Iterator[None]:
    with pytest.raises(CannotDecide) as caught:
        yield
    assert caught.value.code == code


@pytest.fixture
def lead() -> User:
    return factories.make_user("lead")


@pytest.fixture
def trace() -> Trace:
    return contest()


def contest() -> Trace:
    """Make a contested trace: two submissions differ, and the limit allows no more."""
    project = factories.make_project(overlap=2, overlap_limit=2)
    trace = factories.make_trace(project)
    queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=[trace.pk], slots=2, now=NOW)
    for ratings in ([1, 1, 1], [1, -1]):
        submitted_work.submit_trace(factories.make_rater(project), trace, ratings)
    return look(trace).trace


def look(trace: Trace) -> Settlement:
    resolve_traces(project_id=trace.project_id, trace_ids=[trace.pk], now=NOW)
    return Settlement.objects.select_related("trace").get(pk=trace.pk)


def test_contested_traces_are_listed(trace: Trace) -> None:
    assert [row.trace for row in list_contested(project_id=trace.project_id)] == [trace]
    assert look(trace).differs_at == 1


def test_decision_makes_a_revision_with_its_author(trace: Trace, lead: User) -> None:
    assert decide_trace(trace_id=trace.pk, first_error=1, note="7 × 8 is 56.", by=lead, now=NOW) == 1
    found = consensus.current_revisions(project_id=trace.project_id).get()
    assert (found.first_error, found.source, found.made_by, found.note) == (1, "person", lead, "7 × 8 is 56.")
    assert found.labels == [[0, 0, 1, 1.0, 2], [1, 0, -1, 1.0, 2]]
    assert not list_contested(project_id=trace.project_id).exists()
    event = Event.objects.get(what="trace.decided")
    assert (event.by, event.detail["first_error"], event.detail["revision"]) == (lead.pk, 1, 1)


@pytest.mark.fault
def test_decide_and_send_back_update_the_totals_immediately(trace: Trace, lead: User) -> None:
    def told() -> tuple[int, int]:
        submitted_work.refresh_quality(now=NOW + dt.timedelta(hours=next(hours)))
        content = ProjectStats.objects.get(pk=trace.project_id).content
        return content["settled"]["traces"], content["settlements"].get("contested", 0)

    hours = itertools.count()
    project_stats.compute_project_stats(project_id=trace.project_id, now=NOW - dt.timedelta(hours=1))
    assert told() == (0, 1)
    decide_trace(trace_id=trace.pk, first_error=1, by=lead, now=NOW)
    assert told() == (1, 0)
    send_back_trace(trace_id=trace.pk, by=lead, now=NOW)
    assert told() == (0, 0)


def test_decide_an_error_that_no_rater_reported(trace: Trace, lead: User) -> None:
    decide_trace(trace_id=trace.pk, first_error=2, by=lead, now=NOW)
    labels = consensus.current_revisions(project_id=trace.project_id).get().labels
    assert labels == [[0, 0, 1, 1.0, 2], [1, 0, 1, 1.0, 2], [2, 0, -1, 1.0, 1]]
    decide_trace(trace_id=trace.pk, first_error=None, by=lead, now=NOW)
    assert consensus.current_revisions(project_id=trace.project_id).get().revision == 2


def test_decision_is_kept_after_later_submissions(trace: Trace, lead: User) -> None:
    decide_trace(trace_id=trace.pk, first_error=1, by=lead, now=NOW)
    submitted_work.submit_trace(factories.make_rater(trace.project), trace, [1, 1, 1], population="extra")
    row = look(trace)
    assert (row.state, row.n_readings, row.consensus_revision) == ("decided", 3, 1)


def test_send_back_exceeds_the_limit_and_settles_by_the_new_submission(trace: Trace, lead: User) -> None:
    send_back_trace(trace_id=trace.pk, note="Read step 2 again.", by=lead, now=NOW)
    assert (look(trace).state, look(trace).reason) == ("asked", "sent_back")
    assert sum(QueueEntry.objects.filter(lane__arm="opinion").values_list("slots_left", flat=True)) == 1
    assert Event.objects.get(what="trace.sent_back").by == lead.pk
    submitted_work.submit_trace(factories.make_rater(trace.project), trace, [1, -1], population="opinion")
    assert look(trace).state == "settled"
    assert consensus.current_revisions(project_id=trace.project_id).get().first_error == 1


def test_send_back_discards_a_decision(trace: Trace, lead: User) -> None:
    decide_trace(trace_id=trace.pk, first_error=1, by=lead, now=NOW)
    send_back_trace(trace_id=trace.pk, by=lead, now=NOW)
    assert not consensus.current_revisions(project_id=trace.project_id).exists()
    assert Consensus.objects.filter(trace=trace).count() == 1


def test_send_back_waits_for_the_requested_submission(lead: User) -> None:
    """Two raters agree, and a person requests a third label. A correction without a change settles nothing before the
    third label arrives."""
    project = factories.make_project(overlap=2, overlap_limit=2)
    trace = factories.make_trace(project)
    first, second = submitted_work.make_raters(project, 2)
    one = submitted_work.submit_trace(first, trace, [1, -1])
    submitted_work.submit_trace(second, trace, [1, -1])
    assert look(trace).state == "settled"
    send_back_trace(trace_id=trace.pk, by=lead, now=NOW)
    submitted_work.correct_step(one, 0, 0)
    assert settlements.mark_unsettled_due(project_id=project.pk, now=NOW) == 1
    row = look(trace)
    assert (row.state, row.reason, row.n_votes) == ("asked", "sent_back", 2)
    submitted_work.submit_trace(factories.make_rater(project), trace, [1, 1, 1], population="opinion")
    row = look(trace)
    assert (row.state, row.reason, row.n_votes) == ("settled", "most_agree", 3)


def test_send_back_during_a_submit_waits_for_another_submission(trace: Trace, lead: User) -> None:
    """A submission that was not evaluated yet does not fulfill the request."""
    submitted_work.submit_trace(factories.make_rater(trace.project), trace, [1, -1], population="extra")
    send_back_trace(trace_id=trace.pk, by=lead, now=NOW)
    assert (look(trace).reason, look(trace).n_votes) == ("sent_back", 3)


@pytest.mark.usefixtures("real_connections")
def test_one_of_two_concurrent_decisions_is_refused(lead: User) -> None:
    """Both act on the same page; the later one is refused, and the first decision is kept."""
    contested, other = contest(), factories.make_user("other")
    seen = Settlement.objects.get(pk=contested.pk).changed_at
    acts: list[Callable[[], object]] = [
        partial(decide_trace, trace_id=contested.pk, first_error=1, seen=seen, by=lead, now=LATER),
        partial(decide_trace, trace_id=contested.pk, first_error=None, seen=seen, by=other, now=LATER),
        partial(send_back_trace, trace_id=contested.pk, seen=seen, by=other, now=LATER),
        partial(send_back_trace, trace_id=contested.pk, seen=seen, by=lead, now=LATER),
    ]
    results = run_at_once(*acts)
    refused = [result for result in results if isinstance(result, CannotDecide)]
    assert len(refused) == 3, results
    assert {error.code for error in refused} == {"changed"}
    assert Event.objects.filter(what__in=["trace.decided", "trace.sent_back"]).count() == 1
    assert Consensus.objects.count() + AddedSlot.objects.count() == 1


@pytest.mark.usefixtures("real_connections")
def test_decision_during_submits_and_resolution_is_final(lead: User) -> None:
    """Late submissions and their resolution run concurrently with a decision: it is final, and they are counted."""
    contested = contest()
    everybody = submitted_work.make_raters(contested.project, 2)
    settle = partial(resolve_traces, project_id=contested.project_id, trace_ids=[contested.pk], now=LATER)
    results = run_at_once(
        partial(decide_trace, trace_id=contested.pk, first_error=2, by=lead, now=LATER),
        *(partial(submitted_work.submit_trace, rater, contested, [1, -1], population="extra") for rater in everybody),
        settle,
        settle,
    )
    assert not [result for result in results if isinstance(result, Exception)], results
    row = look(contested)
    assert (row.state, row.n_readings, row.is_due) == ("decided", 4, False)
    assert consensus.current_revisions(project_id=contested.project_id).get().first_error == 2


@pytest.mark.parametrize("first_error", [3, 99])
def test_decide_refuses_a_missing_step(trace: Trace, lead: User, first_error: int) -> None:
    with refuses("no_such_step"):
        decide_trace(trace_id=trace.pk, first_error=first_error, by=lead, now=NOW)


def test_unsubmitted_trace_cannot_be_decided_and_withdrawn_trace_cannot_be_sent_back(trace: Trace, lead: User) -> None:
    with refuses("not_submitted"):
        decide_trace(trace_id=factories.make_trace(trace.project).pk, first_error=0, by=lead, now=NOW)
    queue.withdraw_traces(trace_ids=[trace.pk], now=NOW, reason="bad", by=lead)
    with refuses("withdrawn"):
        send_back_trace(trace_id=trace.pk, by=lead, now=NOW)
