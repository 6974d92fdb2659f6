"""Available work and managed projects, at a constant number of queries."""

import datetime as dt
from typing import Any, cast

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from annotate import todo
from jobs.models import Job, JobState
from labeling import queue, raters
from labeling.models import Project, Rater, Settlement
from labeling.projects import lifecycle as labeling_projects
from labeling.quality import project_stats, settlements
from people import members
from people.models import Membership, Role
from tests import factories
from tests.labeling.assignments import clients
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db
SUBMITTED = {"state": "submitted", "submitted_at": factories.NOW, "finish_reason": "solution", "submitted_revision": 1}


def a_project_of(user: User, waiting: int = 0, role: Role = Role.ANNOTATOR, **fields: Any) -> Project:
    project = factories.make_project(**fields)
    members.add_member(project=project, user=user, role=role, now=factories.NOW)
    lane = factories.make_lane(project)
    for _ in range(waiting):
        factories.make_entry(lane, factories.make_trace(project))
    return project


def only(user: User) -> todo.ProjectTodo:
    (each,) = todo.list_todos(user)
    return each


def test_waiting_counts_traces_new_to_the_rater() -> None:
    user = factories.make_user()
    project = a_project_of(user, waiting=3)
    assert (only(user).waiting, only(user).status) == (3, "waiting")
    first = project.traces.order_by("pk").first()
    assert first
    factories.make_assignment(Rater.objects.get(), first, **SUBMITTED, holds_slot=True)
    assert only(user).waiting == 2


def test_waiting_leaves_out_assigned_traces_and_closed_lanes() -> None:
    user = factories.make_user()
    project = a_project_of(user)
    factories.make_entry(factories.make_lane(project, arm="gold"), factories.make_trace(project), slots=0)
    closed = factories.make_lane(project, arm="policy", closed_at=factories.NOW)
    factories.make_entry(closed, factories.make_trace(project))
    assert (only(user).waiting, only(user).status) == (0, "nothing")


def test_waiting_stops_counting_at_the_limit() -> None:
    marks = [todo.ProjectTodo(Membership(), None, waiting=n).over for n in (0, 1, 10, 11, 20, 21, todo.COUNT_LIMIT + 1)]
    assert marks == [0, 0, 0, 10, 10, 20, todo.COUNT_LIMIT]


@pytest.mark.parametrize(("role", "may"), [(Role.LEAD, True), (Role.REVIEWER, True), (Role.ENGINEER, False)])
def test_begin_rating_depends_on_the_role(role: Role, may: bool, client: Client) -> None:
    user = factories.make_user()
    project = a_project_of(user, waiting=1, role=role)
    assert (only(user).may_begin_rating, only(user).rater) == (may, None)
    client.force_login(user)
    response = client.post(reverse("annotate:begin_rating", args=[project.slug]))
    assert response.status_code == (302 if may else 403)
    assert (only(user).rater is not None, only(user).waiting) == ((True, 1) if may else (False, 0))


@pytest.mark.parametrize("state", ["paused", "closed"])
def test_closed_or_paused_project_has_a_reason(state: str) -> None:
    user = factories.make_user()
    a_project_of(user, waiting=1, state=state)
    assert only(user).status == state
    assert only(user).reason


@pytest.mark.fault
def test_home_and_claim_give_the_same_reason_for_an_empty_queue(now: dt.datetime, client: Client) -> None:
    user, other = factories.make_user(), factories.make_user()
    project = a_project_of(user)
    mine, theirs = Rater.objects.get(), factories.make_rater(project, other)
    reasons = [reason_on_home_and_claim(client, user, mine)]  # nothing is queued
    factories.make_submitted(mine, factories.make_trace(project))
    reasons.append(reason_on_home_and_claim(client, user, mine))  # every trace has its labels
    assignment = factories.make_submitted(mine, factories.make_trace(project))
    factories.make_entry(project.lanes.get(), assignment.trace)
    reasons.append(reason_on_home_and_claim(client, user, mine))  # the rest is for other raters
    ends = timezone.now() + dt.timedelta(minutes=20)
    factories.make_assignment(theirs, factories.make_trace(project), lease_ends_at=ends)
    reasons.append(reason_on_home_and_claim(client, user, mine))  # others have the rest open
    assert f"{timezone.localtime(ends):%H:%M}" in reasons[-1]
    assert len(set(reasons)) == 4


def reason_on_home_and_claim(client: Client, user: User, rater: Rater) -> str:
    reason = only(user).reason
    client.force_login(user)
    home = client.get(reverse("annotate:home")).content.decode()
    assert f'data-status="nothing">{escape(reason)}' in home
    with pytest.raises(queue.NothingLeft) as refused:
        queue.claim_trace(rater_id=rater.pk, now=timezone.now())
    assert reason in str(refused.value)
    return reason


def test_hidden_gold_is_not_counted() -> None:
    user = factories.make_user()
    project = a_project_of(user)
    empty = only(user)
    factories.make_entry(factories.make_lane(project, arm="gold"), factories.make_trace(project), slots=9)
    assert (only(user).status, only(user).reason) == ("nothing", empty.reason)


def test_status_of_a_paused_or_failed_rater() -> None:
    user = factories.make_user()
    a_project_of(user, waiting=1)
    Rater.objects.update(stage="failed")
    assert only(user).status == "failed"
    Rater.objects.update(stage="working", paused_at=factories.NOW, paused_reason="Call me.")
    assert (only(user).status, "Call me." in only(user).reason) == ("rater_paused", True)


def test_archived_and_left_projects_are_not_listed(now: dt.datetime) -> None:
    user = factories.make_user()
    a_project_of(user, state="archived")
    members.leave_project(membership=members.get_membership(project=a_project_of(user), user=user), now=now)
    assert todo.list_todos(user) == []


def test_opened_assignment_needs_a_valid_lease(now: dt.datetime) -> None:
    user = factories.make_user()
    project = a_project_of(user)
    kept = factories.make_assignment(Rater.objects.get(), factories.make_trace(project))
    assert todo.list_opened_traces(user, now)[0].assignment == kept
    assert todo.list_opened_traces(user, now + dt.timedelta(hours=1)) == []
    assert todo.list_opened_traces(factories.make_user(), now) == []


@pytest.mark.parametrize("n", [3, 30])
@pytest.mark.parametrize("waiting", [0, 1])
@pytest.mark.fault
def test_query_count_of_home_does_not_depend_on_projects(
    n: int, waiting: int, client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    user = factories.make_user()
    for k in range(n):
        a_project_of(user, waiting=waiting)
        members.create_owned_project(name=f"Own {k}", slug=f"own-{k}", by=user, now=factories.NOW)
    client.force_login(user)
    with django_assert_num_queries(25 if waiting else 26):  # one more for the reason
        response = client.get(reverse("annotate:home"))
    page = response.content.decode()
    assert (page.count("data-project="), page.count("data-managed-project")) == (n, n)


def test_step_marks_show_ratings_and_the_next_step(now: dt.datetime) -> None:
    rater = factories.make_rater(factories.make_project())
    trace = factories.make_trace(rater.project, ["One.", ["Two.", "Another two."], "Three.", "Four."])
    trace.steps.filter(position=2).update(is_rateable=False)
    held = factories.make_assignment(rater, trace)
    client = clients.WorkPageClient(held)
    client.rate([1, -1], now=now)
    opened = todo.list_opened_traces(cast(User, rater.user), now)
    assert [each.marks for each in opened] == [
        [todo.StepMark(1, False), todo.StepMark(-1, False), todo.StepMark(None, True)]
    ]


@pytest.mark.parametrize(("n", "usual"), [(9, None), (11, dt.timedelta(minutes=6))])
def test_typical_time_needs_enough_traces(n: int, usual: dt.timedelta | None) -> None:
    user = factories.make_user()
    project = a_project_of(user, waiting=1)
    other = factories.make_rater(project)
    for minutes in range(1, n + 1):
        factories.make_submitted(other, factories.make_trace(project), ms=minutes * 60_000)
        factories.make_submitted(other, factories.make_trace(project), ms=1, purpose="training")
    assert only(user).typical_time == usual


def test_projects_with_work_come_first() -> None:
    user = factories.make_user()
    for name, waiting in (("A", 0), ("C", 1), ("B", 1)):
        a_project_of(user, waiting=waiting, name=name)
    assert [each.project.name for each in todo.list_todos(user)] == ["B", "C", "A"]


def test_home_announces_a_changed_guideline_to_readers_of_an_older_version(now: dt.datetime, client: Client) -> None:
    user = factories.make_user()
    project = a_project_of(user, waiting=1)
    publish = labeling_projects.publish_guideline
    first = publish(project=project, body="One.", by=user, now=now)
    client.force_login(user)
    assert not only(user).has_new_guideline
    Rater.objects.update(read_guideline=first)
    publish(project=project, body="Two.", changes="Units count.", by=user, now=now)
    assert only(user).has_new_guideline
    page = client.get(reverse("annotate:home")).content.decode()
    assert ("Units count." in page, "data-new-guideline" in page) == (True, True)


def in_progress(project: Project) -> None:
    """Settle one of three traces, contest one, pause a rater and fail a job."""
    two = submitted_work.make_raters(project, 2)
    settled, contested, _unread = (factories.make_trace(project) for _ in range(3))
    for rater, says in zip(two, ([-1], [1, -1]), strict=True):
        submitted_work.submit_trace(rater, settled, [1, -1])
        submitted_work.submit_trace(rater, contested, says)
    submitted_work.refresh_quality(now=factories.NOW)
    with settlements.track_totals(project_id=project.pk, trace_ids=[contested.pk]):
        Settlement.objects.filter(trace=contested).update(state="contested")
    project_stats.compute_project_stats(project_id=project.pk, now=factories.NOW)
    raters.pause_rater(rater=two[0], reason="See me.", by=factories.make_user(), now=factories.NOW)
    failed = {"state": JobState.FAILED, "failure": "No room.", "asked_at": factories.NOW, "ended_at": factories.NOW}
    Job.objects.create(kind="x", subject=f"project:{project.pk}", **failed)


@pytest.mark.parametrize(
    ("role", "pending"),
    [
        (Role.LEAD, ["1 contested", "1 paused", "1 job failed"]),
        (Role.REVIEWER, ["1 contested", "1 job failed"]),
        (Role.ENGINEER, ["1 job failed"]),
    ],
)
def test_progress_and_pending_work_by_role(role: Role, pending: list[str]) -> None:
    project, user = factories.make_project(), factories.make_user()
    members.add_member(project=project, user=user, role=role, now=factories.NOW)
    in_progress(project)
    (managed,) = todo.list_managed_projects(todo.list_todos(user))
    assert (managed.settled, managed.total, managed.last_worked_on) == (1, 3, factories.NOW.astimezone(dt.UTC).date())
    assert managed.pending == pending


def test_annotators_manage_no_projects() -> None:
    project, user = factories.make_project(), factories.make_user()
    members.add_member(project=project, user=user, role=Role.ANNOTATOR, now=factories.NOW)
    assert todo.list_managed_projects(todo.list_todos(user)) == []


@pytest.mark.parametrize("n", [1, 5])
def test_query_count_of_home_does_not_depend_on_managed_projects(
    n: int, client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    lead: User = factories.make_user()
    for _ in range(n):
        members.add_member(project=factories.make_project(), user=lead, role=Role.LEAD, now=factories.NOW)
    client.force_login(lead)
    with django_assert_num_queries(11):
        page = client.get(reverse("annotate:home")).content.decode()
    assert page.count("data-managed-project") == n
