"""Every figure has its n and its interval, or says why not: on the pages, and in the tables behind them."""

import csv
import io

import pytest
from django.test import Client
from django.urls import reverse

from labeling.models import Project, ProjectStats, Rater
from tests.dashboard.annotators.test_views import at_work
from tests.people.personas import Personas, make_personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast(client: Client) -> Personas:
    cast = make_personas()
    client.force_login(cast.lead)
    return cast


def rows_of(client: Client, address: str, key: str) -> list[list[tuple[str, str]]]:
    """The rows of a table as pairs of a column's name and the cell: names come twice."""
    names, *rows = csv.reader(io.StringIO(client.get(address, {"csv": key}).content.decode()))
    return [list(zip(names, row, strict=True)) for row in rows]


@pytest.mark.parametrize("key", ["agreement", "pairs", "slices", "positions"])
def test_every_figure_of_agreement_has_its_interval_or_says_why_not(key: str, client: Client, cast: Personas) -> None:
    at_work(cast, 6)
    rows = rows_of(client, reverse("dashboard:agreement", args=[cast.project.slug]), key)
    assert rows
    for row in rows:
        for place in [place for place, (name, _cell) in enumerate(row) if name == "from"]:
            why = next(cell for name, cell in row[place:] if name == "what is missing, and why")
            assert bool(row[place][1]) != bool(why), row


def test_agreement_tells_recall_by_class_and_the_bootstrap_beside(client: Client, cast: Personas) -> None:
    at_work(cast, 6)
    address = reverse("dashboard:agreement", args=[cast.project.slug])
    told = {each.key: each for each in client.get(address).context["agreement"].figures}
    assert told["recall -1"].value == pytest.approx(1 - told["over_credit"].value)
    assert (told["recall 0"].value, told["recall 0"].why) == (None, "Undefined: there is no case of this kind.")
    assert dict(rows_of(client, address, "agreement")[0])["why no bootstrap"] == "No interval: fewer than 30 problems."
    row = ProjectStats.objects.get(project=cast.project)
    row.content["headline"]["first_error"]["exact"] |= {"bootstrap": [0.25, 0.5], "bootstrap_reason": None}
    row.content["headline"]["first_error"]["pairs_with_a_censored_report"] = 3
    row.save()
    first = dict(rows_of(client, address, "agreement")[0])
    assert [first[name] for name in ("bootstrap from", "bootstrap to", "why no bootstrap")] == ["0.25", "0.5", ""]
    assert "3 pairs of which one reading was cut off are not compared." in client.get(address).content.decode()


def test_overview_tells_the_n_of_each_day_and_the_time_of_its_cost(client: Client, cast: Personas) -> None:
    at_work(cast, 3)
    settings = {"pay_per_hour": 20, "currency": "EUR"}
    Project.objects.filter(pk=cast.project.pk).update(**settings)
    address = reverse("dashboard:overview", args=[cast.project.slug])
    assert "since the start, 4 settled steps" in client.get(address).content.decode()
    alpha, mix = (dict(rows_of(client, address, key)[-1]) for key in ("alpha", "labels"))
    assert (alpha["n"], alpha["problems"]) == ("5", "3")
    assert alpha["what is missing, and why"] == "No interval: fewer than 5 problems."
    assert mix["Steps rated"] == "6"


def test_one_trace_is_counted_in_words(client: Client, cast: Personas) -> None:
    at_work(cast, 1)
    rater = Rater.objects.filter(project=cast.project).exclude(user=cast.annotator).latest("pk")
    told = client.get(reverse("dashboard:annotator", args=[cast.project.slug, rater.pk])).content.decode()
    assert "Of 1 trace read with somebody else" in told
    assert "1 traces" not in told
