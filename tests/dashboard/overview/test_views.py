"""The overview: figures, charts and their tables, at a constant cost."""

import datetime as dt

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from dashboard import statistics
from labeling.models import Project, Settlement, SettlementDay
from labeling.quality import project_stats, running_totals
from people import members
from people.models import Role
from stats.estimates import Reason
from tests import factories
from tests.dashboard.labeled_project import label_traces, read_csv
from tests.people.personas import Personas, make_personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast(client: Client) -> Personas:
    cast = make_personas()
    client.force_login(cast.lead)
    return cast


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


def test_page_costs_the_same_for_many(client: Client, cast: Personas, address: str) -> None:
    costs = []
    for n in (3, 12):
        label_traces(cast, n)
        for _ in range(n):
            members.add_member(project=cast.project, user=factories.make_user(), role=Role.ANNOTATOR, now=factories.NOW)
        with CaptureQueriesContext(connection) as queries:
            client.get(address)
        costs.append(len(queries))
    assert costs[0] == costs[1] <= 12


def test_charts_can_show_the_last_four_weeks(client: Client, cast: Personas, address: str) -> None:
    label_traces(cast, 3)
    first = days_ago(60).date()
    Settlement.objects.filter(trace=Settlement.objects.earliest("pk").pk).update(changed_at=days_ago(60))
    running_totals.apply_drift(
        project_id=cast.project.pk, drift=running_totals.compute_drift(project_id=cast.project.pk)
    )
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


def test_tables_have_the_n_of_each_day(client: Client, cast: Personas, address: str) -> None:
    label_traces(cast, 3)
    Project.objects.filter(pk=cast.project.pk).update(pay_per_hour=20, currency="EUR")
    assert 'data-settled-steps="4"' in client.get(address).content.decode()
    alpha, mix = read_csv(client, address, "alpha")[-1], read_csv(client, address, "labels")[-1]
    assert alpha[4:] == ["5", "3", statistics.explain_missing_value(Reason.FEW_PROBLEMS)]
    assert mix[-1] == "6"
