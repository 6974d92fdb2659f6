"""The pay page: sums as on the overview, removed members, periods, the CSV, the budget and the cost to finish."""

from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from events.models import Event
from labeling.models import Project, ProjectBudget, Rater
from labeling.quality import project_stats
from people import members
from people.models import Role
from tests import factories
from tests.dashboard.labeled_project import read_csv
from tests.labeling.queue import queues
from tests.people.personas import LoggedInPersonas, Personas

pytestmark = pytest.mark.django_db
NOW = factories.NOW


@pytest.fixture
def cast(client: Client, personas: LoggedInPersonas) -> Personas:
    cast = personas.cast
    client.force_login(cast.lead)
    Project.objects.filter(pk=cast.project.pk).update(pay_per_hour=Decimal("17.30"), currency="EUR")
    cast.project.refresh_from_db()
    return cast


@pytest.fixture
def address(cast: Personas) -> str:
    return reverse("dashboard:pay", args=[cast.project.slug])


def add_workers(cast: Personas, n: int, *, ms: int = 1234) -> list[Rater]:
    users = [factories.make_user() for _ in range(n)]
    for user in users:
        members.add_member(project=cast.project, user=user, role=Role.ANNOTATOR, now=NOW)
    people = list(Rater.objects.filter(project=cast.project, user__in=users).order_by("pk"))
    for number, rater in enumerate(people):
        for _ in range(2):
            factories.make_submitted(rater, factories.make_trace(cast.project), ms=ms * (number + 3))
    project_stats.compute_project_stats(project_id=cast.project.pk, now=NOW)
    return people


@pytest.mark.fault
def test_sums_are_those_of_the_overview_even_with_a_removed_member(
    client: Client, cast: Personas, address: str
) -> None:
    people = add_workers(cast, 7, ms=98_765)
    assert people[0].user is not None
    members.remove_member(membership=cast.membership(people[0].user), by=cast.lead, now=NOW)
    page = client.get(address)
    rows = read_csv(client, address, "pay")
    assert len(page.context["people"]) == len(rows) - 1 == 7
    assert [row[2] for row in rows].count("removed") == 1
    total = sum(Decimal(row[-1]) for row in rows[1:])
    assert page.context["total"] == page.context["paid"] == f"€{total:,}"
    overview = client.get(reverse("dashboard:overview", args=[cast.project.slug])).context["overview"]
    assert overview["total_cost"] == page.context["paid"]


@pytest.mark.parametrize(
    ("query", "n"), [("since=2026-11-18&until=2026-11-18&period=month", 2), ("until=2026-11-17", 0)]
)
def test_period_is_a_filter_of_page_and_file(client: Client, cast: Personas, address: str, query: str, n: int) -> None:
    add_workers(cast, 2)
    assert len(client.get(f"{address}?{query}").context["people"]) == n
    assert client.get(f"{address}?{query}&csv=pay").content.decode().count("\n") == n + 1
    assert Event.objects.get(what="download.made").detail["rows"] == n


def test_invalid_dates_show_the_whole_time(client: Client, cast: Personas, address: str) -> None:
    add_workers(cast, 2)
    response = client.get(f"{address}?since=x&period=year")
    assert (response.status_code, len(response.context["people"])) == (200, 2)


def test_budget_is_set_changed_and_removed(client: Client, cast: Personas, address: str) -> None:
    budget = reverse("dashboard:set_budget", args=[cast.project.slug])
    assert client.post(budget, {"amount": "250"}).status_code == 302
    assert 'data-budget="open"' in client.get(address).content.decode()
    ProjectBudget.objects.update(spent=201)
    assert 'data-budget="low"' in client.get(address).content.decode()
    assert client.post(budget, {"amount": "-1"}).status_code == 422
    client.post(budget, {"amount": ""})
    assert not ProjectBudget.objects.exists()
    Project.objects.update(pay_per_hour=None)
    assert client.post(budget, {"amount": "250"}).status_code == 422


@pytest.mark.fault
def test_cost_to_finish_has_an_interval_from_five_annotators(client: Client, cast: Personas, address: str) -> None:
    queues.fill_lane(cast.project, 40, slots=2)
    add_workers(cast, 6, ms=98_765)
    to_finish = client.get(address).context["to_finish"]
    assert to_finish.forecast.labels == 80
    low, high = to_finish.forecast.low, to_finish.forecast.high
    assert low < to_finish.forecast.value < high


@pytest.mark.fault
def test_page_costs_the_same_for_many(client: Client, cast: Personas, address: str) -> None:
    costs = []
    for n in (2, 12):
        add_workers(cast, n)
        with CaptureQueriesContext(connection) as queries:
            client.get(address)
        costs.append(len(queries))
    assert costs[0] == costs[1] <= 12
