"""The overview: figures, charts and their tables, at a constant cost; the to-do list."""

import datetime as dt

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from dashboard import statistics
from dashboard.views.overview import TodoItem
from labeling import queue
from labeling.models import Project, ProjectStats, Rater, Settlement, SettlementDay
from labeling.projects import lifecycle
from labeling.quality import project_stats, settlements
from labeling.quality.adjudication import withdraw_traces
from people import members
from stats.estimates import Reason
from tests import factories
from tests.dashboard.labeled_project import count_queries_as_it_grows, label_traces, read_csv
from tests.labeling.quality import submitted_work
from tests.people.personas import Personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def address(cast: Personas) -> str:
    return reverse("dashboard:overview", args=[cast.project.slug])


def days_ago(n: int) -> dt.datetime:
    return timezone.now() - dt.timedelta(days=n)


def test_project_without_submissions_has_an_empty_overview(client: Client, address: str) -> None:
    response = client.get(address)
    assert response.status_code == 200
    assert response.context["overview"] is None
    assert 'data-empty="overview"' in response.content.decode()


@pytest.mark.fault
def test_page_costs_the_same_for_many(client: Client, cast: Personas, address: str) -> None:
    few, many = count_queries_as_it_grows(client, cast, address)
    assert few == many <= 15


def test_opening_the_page_has_stale_statistics_computed_soon(client: Client, cast: Personas, address: str) -> None:
    label_traces(cast, 1)
    project_stats.compute_project_stats(project_id=cast.project.pk, now=timezone.now())
    ProjectStats.objects.update(is_stale=True)
    client.get(address)
    assert ProjectStats.objects.get(pk=cast.project.pk).is_awaited


@pytest.mark.fault
def test_charts_can_show_the_last_four_weeks(client: Client, cast: Personas, address: str) -> None:
    label_traces(cast, 3)
    first = days_ago(60).date()
    Settlement.objects.filter(trace=Settlement.objects.earliest("pk").pk).update(changed_at=days_ago(60))
    settlements.apply_drift(project_id=cast.project.pk, drift=settlements.compute_drift(project_id=cast.project.pk))
    project_stats.compute_project_stats(project_id=cast.project.pk, now=days_ago(0))
    whole, recent = read_csv(client, address, "settled"), read_csv(client, address, "settled", weeks="4")
    assert whole[1][0] == first.isoformat()
    assert len(recent) - 1 == 28
    assert whole[-1] == recent[-1]  # traces settled before are counted
    assert "?weeks=4&amp;csv=settled" in client.get(address + "?weeks=4").content.decode()


def test_overview_renders_with_wrong_totals(client: Client, cast: Personas, address: str) -> None:
    label_traces(cast, 3)
    SettlementDay.objects.filter(project=cast.project).update(traces=-8)
    project_stats.compute_project_stats(project_id=cast.project.pk, now=factories.NOW)
    assert client.get(address).status_code == 200


@pytest.mark.fault
def test_tables_have_the_n_of_each_day(client: Client, cast: Personas, address: str) -> None:
    label_traces(cast, 3)
    Project.objects.filter(pk=cast.project.pk).update(pay_per_hour=20, currency="EUR")
    assert 'data-settled-steps="4"' in client.get(address).content.decode()
    alpha, mix = read_csv(client, address, "alpha")[-1], read_csv(client, address, "labels")[-1]
    assert alpha[4:] == ["5", "3", statistics.explain_missing_value(Reason.FEW_PROBLEMS)]
    assert mix[-1] == "11"


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


@pytest.mark.fault
def test_bad_problems_and_unread_guidelines_are_listed_until_resolved(client: Client, cast: Personas) -> None:
    project = cast.project
    Rater.objects.filter(project=project).update(removed_at=factories.NOW)  # those of the cast
    trace, other = factories.make_trace(project), factories.make_trace(project)
    raters = submitted_work.make_raters(project, 2)
    submitted_work.report_problem(raters[0], trace)
    submitted_work.refresh_quality(now=factories.NOW)
    item = todo(client, cast)["bad_problems"]
    assert item.count == "1"
    assert [row.trace for row in client.get(item.url).context["traces"]] == [trace]
    lifecycle.publish_guideline(project=project, body="# New", by=cast.lead, now=factories.NOW)
    version = Project.objects.get(pk=project.pk).guideline
    Rater.objects.filter(pk=raters[0].pk).update(read_guideline=version)
    item = todo(client, cast)["unread_guideline"]
    assert item.count == "1"
    assert [person.rater for person in client.get(item.url).context["annotators"].listed] == [raters[1]]
    queue.withdraw_traces(trace_ids=[trace.pk, other.pk], reason="No figure.", now=factories.NOW, by=cast.lead)
    Rater.objects.filter(pk=raters[1].pk).update(read_guideline=version)
    assert todo(client, cast) == {}
