"""The annotators: list, filters and downloaded table, the gold threshold; the work of one, and what a lead can do."""

import csv
import datetime as dt
import io
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from dashboard import annotator_summaries
from dashboard.views.annotators import load_annotator, load_annotators
from labeling import raters
from labeling.models import Lane, ProjectStats, Rater
from labeling.models.queue import SamplingSource
from labeling.projects import lifecycle
from labeling.quality import project_stats, signals
from stats import rater_protection
from tests import factories
from tests.dashboard.labeled_project import count_queries_as_it_grows, label_traces, read_csv
from tests.labeling.quality import submitted_work
from tests.people.personas import LoggedInPersonas, Personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def address(cast: Personas) -> str:
    return reverse("dashboard:annotators", args=[cast.project.slug])


def test_annotators_without_answers_have_no_gold_accuracy(client: Client, address: str) -> None:
    response = client.get(address)
    assert response.status_code == 200
    assert 'data-empty="gold"' in response.content.decode()


@pytest.mark.fault
def test_page_costs_the_same_for_many(client: Client, cast: Personas, address: str) -> None:
    few, many = count_queries_as_it_grows(client, cast, address)
    assert few == many <= 8


@pytest.mark.fault
def test_page_describes_the_gold_threshold(client: Client, cast: Personas, address: str) -> None:
    label_traces(cast, 2)
    assert 'data-gold-threshold="missing"' in client.get(address).content.decode()
    lifecycle.set_gold_threshold(project=cast.project, bar=0.8, by=None, now=factories.NOW)
    assert 'data-gold-threshold="unused"' in client.get(address).content.decode()


@pytest.mark.fault
def test_annotator_page_shows_the_evidence_and_who_paused(client: Client, cast: Personas) -> None:
    people = submitted_work.make_raters(cast.project, 4)
    for number in range(20 + 5):  # a pause by a check follows up to five traces later
        trace = factories.make_trace(cast.project)
        submitted_work.submit_trace(people[0], trace, [1, 1, 1])
        submitted_work.submit_trace(people[1 + number % 3], trace, [1, -1])
        if number >= 19:
            submitted_work.refresh_quality(now=factories.NOW)
    raters.pause_rater(rater=people[1], reason="See me.", by=cast.lead, now=factories.NOW)
    pages = [
        client.get(reverse("dashboard:annotator", args=[cast.project.slug, person.pk])).content.decode()
        for person in people[:2]
    ]
    assert 'data-paused-by="check"' in pages[0]
    assert 'data-protection="overwhelming"' in pages[0]
    assert f'data-false-alarms="{signals.FALSE_FLAGS["alike"]}"' in pages[0].partition('data-flag="alike"')[2]
    for key, n_false in rater_protection.PAUSED_ALONE.items():
        row = pages[0].partition(f'data-signal="{key}"')[2].partition("</tr>")[0]
        assert f'data-false-pauses="{n_false}"' in row
    assert 'data-paused-by="person"' in pages[1]
    assert 'data-protection="open"' in pages[1]


@pytest.mark.fault
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


def test_last_trace_is_the_newest_of_all_lanes(now: dt.datetime, personas: LoggedInPersonas) -> None:
    cast = personas.cast
    project, actor = cast.project, cast.membership(cast.lead)
    policy, gold = (
        Lane.objects.create(project=project, arm=arm) for arm in (SamplingSource.POLICY, SamplingSource.GOLD)
    )
    anna, ben, cora = (factories.make_rater(project, kind="member", user=factories.make_user(n)) for n in "abc")
    assigned = [
        *((anna, policy, 3), (anna, policy, 9), (anna, gold, 5)),
        *((ben, gold, 4), (ben, None, 7), (cora, gold, None)),
    ]
    for rater, lane, days in assigned:
        at = None if days is None else now - dt.timedelta(days=days)
        factories.make_assignment(rater, factories.make_trace(project), lane=lane, held_at=at)
    seen = {person.rater: person.seen_at for person in load_annotators(actor, now).people}
    mine = Rater.objects.get(project=project, user=cast.annotator)
    assert seen == {anna: now - dt.timedelta(days=3), ben: now - dt.timedelta(days=4), cora: None, mine: None}
    for rater, at in seen.items():
        person = load_annotator(actor, rater.pk, now)
        assert person is not None
        assert person.seen_at == at


def test_full_page_lists_paused_annotators_then_those_with_most_steps(
    now: dt.datetime, monkeypatch: pytest.MonkeyPatch, personas: LoggedInPersonas
) -> None:
    cast = personas.cast
    raters = [factories.make_rater(cast.project, kind="member", user=factories.make_user()) for _ in range(4)]
    figures = {str(rater.pk): {"steps": steps} for rater, steps in zip(raters, (5, 0, 9, 7), strict=True)}
    ProjectStats.objects.create(project=cast.project, content={"raters": figures, "watching": {}}, computed_at=now)
    Rater.objects.filter(pk=raters[1].pk).update(paused_at=now)
    monkeypatch.setattr(annotator_summaries, "MAX_LISTED", 3)
    annotators = load_annotators(cast.membership(cast.lead), now)
    assert [person.rater for person in annotators.people] == [raters[2], raters[3], raters[1]]
    assert annotators.n == 5


def test_csv_has_pay_as_a_number_and_pseudonyms(client: Client, personas: LoggedInPersonas) -> None:
    cast = personas.cast
    client.force_login(cast.lead)
    lifecycle.change_settings(project=cast.project, pay_per_hour=Decimal(20), by=cast.lead, now=factories.NOW)
    rater = factories.make_rater(cast.project)
    submitted_work.submit_trace(rater, factories.make_trace(cast.project), [-1])
    submitted_work.refresh_quality(now=factories.NOW)
    address = reverse("dashboard:annotators", args=[cast.project.slug]) + "?csv=annotators"
    _head, *rows = csv.reader(io.StringIO(client.get(address).content.decode()))
    row = next(row for row in rows if row[1] == rater.labeler)
    assert row[-1] == "0.00"
    assert row[5:9] == row[9:13] == ["", "", "", "0"]


def test_annotator_is_paused_with_a_reason_and_resumed(client: Client, cast: Personas) -> None:
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    pause = reverse("dashboard:pause_annotator", args=[cast.project.slug, rater.pk])
    client.post(pause, {"reason": ""})
    rater.refresh_from_db()
    assert rater.paused_at is None
    assert "Let us talk." in client.post(pause, {"reason": "Let us talk."}, follow=True).content.decode()
    rater.refresh_from_db()
    assert rater.paused_at is not None
    client.post(reverse("dashboard:resume_annotator", args=[cast.project.slug, rater.pk]))
    rater.refresh_from_db()
    assert rater.paused_at is None
    elsewhere = factories.make_rater(factories.make_project())
    assert client.post(reverse("dashboard:pause_annotator", args=[cast.project.slug, elsewhere.pk])).status_code == 404


def test_submissions_are_compared_with_the_consensus(client: Client, cast: Personas) -> None:
    label_traces(cast, 3)
    rater = Rater.objects.filter(project=cast.project).exclude(user=cast.annotator).latest("pk")
    address = reverse("dashboard:annotator", args=[cast.project.slug, rater.pk])
    context = client.get(address).context
    results = [row.result for row in context["submissions"]]
    assert results[0] != results[1] == results[2]
    assert results[2] in context["submissions"][2].known  # settled as they labeled it
    assert not any(row.differs for row in context["submissions"])
    assert context["person"].others.n == 3


@pytest.mark.fault
def test_page_costs_the_same_for_many_submissions(client: Client, cast: Personas) -> None:
    label_traces(cast, 3)
    rater = Rater.objects.filter(project=cast.project).exclude(user=cast.annotator).latest("pk")
    address = reverse("dashboard:annotator", args=[cast.project.slug, rater.pk])
    costs = []
    for _ in range(2):
        ProjectStats.objects.update(is_stale=False)  # as after a computation
        with CaptureQueriesContext(connection) as queries:
            client.get(address)
        costs.append(len(queries))
        label_traces(cast, 9)
    assert costs[0] == costs[1] <= 15


def test_lists_and_pages_have_the_last_fourteen_days(client: Client, cast: Personas) -> None:
    def days_ago(n: int) -> dt.datetime:
        return timezone.now() - dt.timedelta(days=n)

    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    for days, ms in ((30, 7000), (2, 3000), (2, 1000)):
        factories.make_submitted(rater, factories.make_trace(cast.project), ms=ms, submitted_at=days_ago(days))
    project_stats.compute_project_stats(project_id=cast.project.pk, now=days_ago(0))
    annotators = reverse("dashboard:annotators", args=[cast.project.slug])
    annotator = reverse("dashboard:annotator", args=[cast.project.slug, rater.pk])
    for address, column in ((annotators, 1), (annotator, 0)):
        _head, *rows = read_csv(client, address, "days")
        assert len(rows) == 14
        assert [row[column:] for row in rows if row[-1]] == [[days_ago(2).date().isoformat(), "2", "2.0"]]
