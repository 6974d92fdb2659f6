"""Managed projects on the home page: progress and pending work."""

import datetime as dt

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from annotate import managed_projects, todo
from jobs.models import Job, JobState
from labeling import raters
from labeling.models import Project, Settlement
from labeling.quality import project_stats, running_totals
from people import members
from people.models import Role
from tests import factories
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db


def in_progress(project: Project) -> None:
    """Settle one of three traces, contest one, pause a rater and fail a job."""
    two = submitted_work.make_raters(project, 2)
    settled, contested, _unread = (factories.make_trace(project) for _ in range(3))
    for rater, says in zip(two, ([-1], [1, -1]), strict=True):
        submitted_work.submit_trace(rater, settled, [1, -1])
        submitted_work.submit_trace(rater, contested, says)
    submitted_work.refresh_quality(now=factories.NOW)
    with running_totals.track_totals(project_id=project.pk, trace_ids=[contested.pk]):
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
    (managed,) = managed_projects.list_managed_projects(todo.list_todos(user))
    assert (managed.settled, managed.total, managed.last_worked_on) == (1, 3, factories.NOW.astimezone(dt.UTC).date())
    assert managed.pending == pending


def test_annotators_manage_no_projects() -> None:
    project, user = factories.make_project(), factories.make_user()
    members.add_member(project=project, user=user, role=Role.ANNOTATOR, now=factories.NOW)
    assert managed_projects.list_managed_projects(todo.list_todos(user)) == []


@pytest.mark.parametrize("n", [1, 5])
def test_query_count_of_home_does_not_depend_on_managed_projects(
    n: int, client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    lead: User = factories.make_user()
    for _ in range(n):
        members.add_member(project=factories.make_project(), user=lead, role=Role.LEAD, now=factories.NOW)
    client.force_login(lead)
    with django_assert_num_queries(10):
        page = client.get(reverse("annotate:home")).content.decode()
    assert page.count("data-managed-project") == n
