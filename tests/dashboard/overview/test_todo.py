"""The to-do list on the overview: what it lists, and when an item goes away."""

import pytest
from django.test import Client
from django.urls import reverse

from dashboard.overview.todo import TodoItem
from labeling import queue
from labeling.models import Project, Rater, Settlement
from labeling.projects import lifecycle
from labeling.quality.withdrawal import withdraw_traces
from people import members
from tests import factories
from tests.labeling.quality import submitted_work
from tests.people.personas import Personas, make_personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast(client: Client) -> Personas:
    cast = make_personas()
    client.force_login(cast.lead)
    return cast


def todo(client: Client, cast: Personas) -> dict[str, TodoItem]:
    response = client.get(reverse("dashboard:overview", args=[cast.project.slug]))
    return {item.key: item for item in response.context["todo"]}


def test_new_project_lists_its_first_steps(client: Client, cast: Personas) -> None:
    assert list(todo(client, cast)) == ["import", "guideline"]  # it has an annotator
    factories.make_trace(cast.project)
    members.remove_member(membership=cast.membership(cast.annotator), by=cast.lead, now=factories.NOW)
    assert list(todo(client, cast)) == ["invite", "guideline"]


def test_contested_trace_is_listed_until_it_is_withdrawn(client: Client, cast: Personas) -> None:
    trace = factories.make_trace(cast.project)
    Settlement.objects.create(
        trace=trace,
        project=cast.project,
        state="contested",
        reason="differ_at_limit",
        n_readings=3,
        changed_at=factories.NOW,
        is_due=False,
    )
    assert todo(client, cast)["contested"].count == "1"
    withdraw_traces(project=cast.project, trace_ids=[trace.pk], reason="broken", by=cast.lead, now=factories.NOW)
    assert "contested" not in todo(client, cast)


def test_bad_problems_and_unread_guidelines_are_listed_until_resolved(client: Client, cast: Personas) -> None:
    project = cast.project
    Rater.objects.filter(project=project).update(removed_at=factories.NOW)  # those of the cast
    trace, other = factories.make_trace(project), factories.make_trace(project)
    raters = submitted_work.make_raters(project, 2)
    submitted_work.report_problem(raters[0], trace)
    submitted_work.refresh_quality(now=factories.NOW)
    item = todo(client, cast)["bad_problems"]
    assert item.count == "1"
    assert [row.trace for row in client.get(item.url).context["result"].rows] == [trace]
    lifecycle.publish_guideline(project=project, body="# New", by=cast.lead, now=factories.NOW)
    version = Project.objects.get(pk=project.pk).guideline
    Rater.objects.filter(pk=raters[0].pk).update(read_guideline=version)
    item = todo(client, cast)["unread_guideline"]
    assert item.count == "1"
    assert [person.rater for person in client.get(item.url).context["annotators"].listed] == [raters[1]]
    queue.withdraw_traces(trace_ids=[trace.pk, other.pk], reason="No figure.", now=factories.NOW, by=cast.lead)
    Rater.objects.filter(pk=raters[1].pk).update(read_guideline=version)
    assert todo(client, cast) == {}
