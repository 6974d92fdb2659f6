"""The proposal for a screening set, and adopting it."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from dashboard.views import screening_set
from labeling import gold_sets
from labeling.gold_sets import IN_SET
from labeling.models import Gold
from labeling.models.gold import GoldUse
from tests import factories
from tests.people.personas import Personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def address(cast: Personas) -> str:
    return reverse("dashboard:screening_set", args=[cast.project.slug])


def make_gold(cast: Personas, first_error: int | None) -> Gold:
    return gold_sets.make_served_gold(
        trace=factories.make_trace(cast.project),
        use=GoldUse.HIDDEN,
        accepted_first_errors=[first_error],
        by=cast.reviewer,
        now=factories.NOW,
    )


def test_project_without_candidates_has_an_empty_proposal(client: Client, address: str) -> None:
    assert 'data-empty="candidates"' in client.get(address).content.decode()


def test_proposal_has_the_wanted_number_of_each_stratum(client: Client, cast: Personas, address: str) -> None:
    for first_error in (None, None, None, 0):
        make_gold(cast, first_error)
    proposal = client.get(address, {"none": 1, "early": 2}).context["proposal"]
    assert [(each.key, each.wanted, each.chosen, each.available) for each in proposal["strata"]] == [
        ("none", 1, 1, 3),
        ("early", 2, 1, 1),
        ("middle", 0, 0, 0),
        ("late", 0, 0, 0),
    ]
    assert proposal["is_short"]
    assert proposal["n_hidden_drawn"] == 2
    assert proposal["n_hidden_left"] == 2
    gold_page = client.get(reverse("dashboard:gold", args=[cast.project.slug]))
    assert [n for _name, n in gold_page.context["hidden"]] == [3, 1, 0, 0]


def test_proposal_that_passes_without_reading_has_a_warning(client: Client, cast: Personas, address: str) -> None:
    for first_error in (None, None, None, 0):
        make_gold(cast, first_error)
    html = client.get(address, {"none": 3, "early": 1}).content.decode()
    assert 'data-warning="passes-without-reading"' in html


@pytest.mark.fault
def test_page_costs_the_same_for_many(client: Client, cast: Personas, address: str) -> None:
    costs = []
    for first_errors in ((None, 0), (0, 1, 2) * 3):
        for first_error in first_errors:
            make_gold(cast, first_error)
        with CaptureQueriesContext(connection) as queries:
            client.get(address, {"n": 12, "round": 2})
        costs.append(len(queries))
    assert costs[0] == costs[1]


@pytest.mark.fault
def test_selected_traces_become_the_set(client: Client, cast: Personas, address: str) -> None:
    made = [make_gold(cast, first_error) for first_error in (None, None, None, 0)]
    adopt = reverse("dashboard:adopt_screening_set", args=[cast.project.slug])
    assert client.post(adopt, {"trace": ["x", "999999"]}).status_code == 422
    chosen = [made[0].trace_id, made[3].trace_id]
    assert client.post(adopt, {"trace": chosen}).status_code == 302
    assert set(Gold.objects.filter(use="screening").values_list("trace_id", flat=True)) == set(chosen)
    rows = client.get(address, {"none": 0, "early": 1}).context["proposal"]["rows"]
    current = screening_set.ORIGIN_LABELS[IN_SET]
    assert [(row.trace.pk, row.origin, row.is_chosen) for row in rows] == [
        (chosen[1], current, True),
        (chosen[0], current, False),
    ]
