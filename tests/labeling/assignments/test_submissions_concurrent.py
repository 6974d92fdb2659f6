"""A submit that waits for others: it acts on the rows as they are then, once, or not at all."""

import datetime as dt
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

import pytest
from django.db import connection, connections, transaction

from events.models import Event
from labeling import assignments, queue
from labeling.models import (
    Assignment,
    Guideline,
    Project,
    ProjectBudget,
    QueueEntry,
    Rater,
    RatingEdit,
    Submission,
    Trace,
)
from labeling.projects import budgets, lifecycle
from tests import factories
from tests.concurrency import run_at_once
from tests.labeling.assignments.clients import WorkPageClient

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("real_connections")]

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
RATINGS = [1, 1, 1]
MS = 10_000  # at a cent a second, ten cents


class Desk(NamedTuple):
    """A rater with a trace that is open and the next one held, in a project that pays a cent a second."""

    project: Project
    rater: Rater
    client: WorkPageClient
    held: int

    def state_of(self, assignment: int) -> str:
        return Assignment.objects.values_list("state", flat=True).get(pk=assignment)

    @property
    def assignment(self) -> Assignment:
        return Assignment.objects.get(pk=self.client.assignment.pk)

    @property
    def spent(self) -> Decimal:
        return ProjectBudget.objects.get(project=self.project).spent


@pytest.fixture
def desk(now: dt.datetime) -> Desk:
    project = factories.make_project(pay_per_hour=Decimal(36), open_limit=3)
    budgets.set_budget(project=project, amount=Decimal(100), by=None, now=now)
    lane, rater = factories.make_lane(project, "top_up"), factories.make_rater(project)
    for _ in range(2):
        factories.make_entry(lane, factories.make_trace(project, ["x"] * len(RATINGS)), slots=1)
    claim = queue.claim_trace(rater_id=rater.pk, now=now, opened=True)
    held = queue.claim_trace(rater_id=rater.pk, now=now)
    client = WorkPageClient(Assignment.objects.get(pk=claim.assignment_id))
    return Desk(project, rater, client, held.assignment_id)


def prepare_submit(desk: Desk, now: dt.datetime, **more: Any) -> Callable[[], Submission]:
    """Return a submit that also brings the ratings, and opens the held trace."""
    writes = [desk.client.write(step, rating) for step, rating in enumerate(RATINGS)]
    submit = partial(assignments.submit, writes=writes, active_ms=MS, opens=desk.held, **more)
    return partial(submit, **desk.client.place, now=now + dt.timedelta(minutes=2), by=None)


def run(call: Callable[[], Any]) -> Any:
    try:
        return call()
    finally:
        connections.close_all()


def run_meanwhile(call: Callable[[], Any], *, change: Callable[[], object]) -> Any:
    """Return the answer of a call that waits while a transaction makes this change. The change must lock a row that
    the call needs."""

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            change()
            answer: Future[Any] = pool.submit(run, call)
            wait_for_lock(answer)
            assert not answer.done(), answer.result()
        return answer.result(timeout=60)


def wait_for_lock(answer: "Future[Any]", n_waiting: int = 1) -> None:
    """Return when this many connections wait for a lock, or there is an answer."""
    for _ in range(1000):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            cursor.execute(WAITING)
            if cursor.fetchone() == (n_waiting,) or answer.done():
                return
        time.sleep(0.01)
    raise AssertionError("the call neither waits nor ends")


def assert_submitted_once(desk: Desk, *, version: int = 2) -> None:
    submission = Submission.objects.get()
    assert (submission.revision, submission.total_ms) == (1, MS)
    row = desk.assignment
    assert (row.state, row.submitted_revision, row.version, row.holds_slot) == ("submitted", 1, version, True)
    assert row.due_at == submission.submitted_at
    assert Event.objects.filter(what="submission.made", subject=f"assignment:{row.pk}").count() == 1
    assert desk.spent == Decimal("0.1")
    assert RatingEdit.objects.filter(assignment=row).count() == len(RATINGS)


def renew_all(desk: Desk, now: dt.datetime) -> None:
    """Change every row that a submit changes, without any effect on what it does."""
    Assignment.objects.filter(rater=desk.rater).update(lease_ends_at=now + dt.timedelta(minutes=29))
    Trace.objects.filter(project=desk.project).update(ref="changed")
    ProjectBudget.objects.filter(project=desk.project).update(spent=Decimal(7))


def test_submit_acts_on_rows_that_changed_while_it_waited(desk: Desk, now: dt.datetime) -> None:
    submit = prepare_submit(desk, now)
    submission = run_meanwhile(submit, change=partial(renew_all, desk, now))
    assert submission.opened_version == Assignment.objects.get(pk=desk.held).version == 1
    assert desk.state_of(desk.held) == "opened"
    assert desk.spent == Decimal("7.1")
    ProjectBudget.objects.update(spent=Decimal("0.1"))
    assert_submitted_once(desk)


def test_submit_waits_for_the_budget_and_adds_to_what_it_is_then(desk: Desk, now: dt.datetime) -> None:
    change = partial(ProjectBudget.objects.filter(project=desk.project).update, spent=Decimal(7))
    submission = run_meanwhile(prepare_submit(desk, now), change=change)
    assert (submission.opened_version, desk.spent) == (1, Decimal("7.1"))


def test_submit_counts_a_trace_that_lapses_while_it_waits_as_late(desk: Desk, now: dt.datetime) -> None:
    later = now + dt.timedelta(hours=2)
    submit = prepare_submit(desk, later)
    submission = run_meanwhile(submit, change=partial(queue.lapse_expired_leases, now=later))
    assert submission.opened_version is None
    assert desk.state_of(desk.held) == "lapsed"
    assert_submitted_once(desk)
    assert Event.objects.get(what="submission.made").detail["was_late"]
    assert QueueEntry.objects.get(trace=desk.assignment.trace_id).slots_left == 0


def test_submit_opens_no_trace_that_was_released_while_it_waited(desk: Desk, now: dt.datetime) -> None:
    def change() -> None:
        Trace.objects.filter(pk=desk.client.assignment.trace_id).update(ref="changed")
        queue.release_held(rater_id=desk.rater.pk, now=now, reason="page closed", by=None)

    submission = run_meanwhile(prepare_submit(desk, now), change=change)
    assert submission.opened_version is None
    assert desk.state_of(desk.held) == "released"
    assert_submitted_once(desk)


def test_submit_notices_a_rating_of_another_window_while_it_waits(desk: Desk, now: dt.datetime) -> None:
    other = WorkPageClient(desk.client.assignment, "other")
    submit = prepare_submit(desk, now, promise=assignments.SubmitPromise(seen=0, code="solution"))
    with pytest.raises(assignments.UnseenRatings):
        run_meanwhile(submit, change=partial(other.rate, [1]))
    assert desk.assignment.state == "opened"
    assert desk.state_of(desk.held) == "held"
    assert not Submission.objects.exists()
    assert desk.spent == 0


def test_copies_of_a_submit_count_once(desk: Desk, now: dt.datetime) -> None:
    outcomes = run_at_once(*[prepare_submit(desk, now)] * 4)
    assert {each.pk for each in outcomes if isinstance(each, Submission)} == {Submission.objects.get().pk}
    assert len(outcomes) == sum(isinstance(each, Submission) for each in outcomes), outcomes
    assert_submitted_once(desk)
    assert desk.state_of(desk.held) == "opened"
    assert sorted(each.opened_version or 0 for each in outcomes if isinstance(each, Submission)) == [0, 0, 0, 1]


def test_submit_and_a_new_guideline_do_not_wait_for_each_other(desk: Desk, now: dt.datetime) -> None:
    """The submit locks the trace that it opens, which the new guideline releases."""
    publish = partial(lifecycle.publish_guideline, project=desk.project, body="Be fair.", by=None, now=now)
    with ThreadPoolExecutor(2) as pool:
        with transaction.atomic():
            # The publication locks its project, then waits for this row.
            Guideline.objects.create(project=desk.project, version=1, body="x", published_at=now)
            published: Future[Any] = pool.submit(run, publish)
            wait_for_lock(published)
            submitted: Future[Any] = pool.submit(run, prepare_submit(desk, now))
            wait_for_lock(submitted, 2)
            transaction.set_rollback(True)
        assert published.result(timeout=60).version == 1
        assert submitted.result(timeout=60).opened_version == 1
    assert_submitted_once(desk)
    assert desk.state_of(desk.held) == "opened"
