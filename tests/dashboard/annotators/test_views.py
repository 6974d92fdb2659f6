"""The list of annotators: filters, the gold threshold, a constant cost."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from labeling import raters
from labeling.models import Rater
from labeling.projects import lifecycle
from people import members
from people.models import Role
from tests import factories
from tests.dashboard.labeled_project import label_traces
from tests.people.personas import Personas, make_personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast(client: Client) -> Personas:
    cast = make_personas()
    client.force_login(cast.lead)
    return cast


@pytest.fixture
def address(cast: Personas) -> str:
    return reverse("dashboard:annotators", args=[cast.project.slug])


def test_annotators_without_answers_have_no_gold_accuracy(client: Client, address: str) -> None:
    response = client.get(address)
    assert response.status_code == 200
    assert 'data-empty="gold"' in response.content.decode()


def test_page_costs_the_same_for_many(client: Client, cast: Personas, address: str) -> None:
    costs = []
    for n in (3, 12):
        label_traces(cast, n)
        for _ in range(n):
            members.add_member(project=cast.project, user=factories.make_user(), role=Role.ANNOTATOR, now=factories.NOW)
        with CaptureQueriesContext(connection) as queries:
            client.get(address)
        costs.append(len(queries))
    assert costs[0] == costs[1] <= 8


def test_page_describes_the_gold_threshold(client: Client, cast: Personas, address: str) -> None:
    label_traces(cast, 2)
    assert 'data-gold-threshold="missing"' in client.get(address).content.decode()
    lifecycle.set_gold_threshold(project=cast.project, bar=0.8, by=None, now=factories.NOW)
    assert 'data-gold-threshold="unused"' in client.get(address).content.decode()


def test_annotators_are_filtered_by_name_and_choice(client: Client, cast: Personas, address: str) -> None:
    label_traces(cast, 2)
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    raters.pause_rater(rater=rater, reason="See me.", by=cast.lead, now=factories.NOW)

    def list_names(query: str) -> list[str]:
        return [person.name for person in client.get(address + query).context["annotators"].listed]

    assert len(list_names("")) == 3
    assert list_names("?choice=paused") == list_names("?q=ANNOTATOR") == ["annotator"]
    assert list_names("?choice=paused&q=nobody") == list_names("?choice=flagged") == []
    assert 'data-empty="filter"' in client.get(address + "?q=nobody").content.decode()
