"""The page of one annotator, and what a lead can do about them."""

import datetime as dt

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from labeling.models import Rater
from labeling.quality import project_stats
from tests import factories
from tests.dashboard.labeled_project import label_traces, read_csv
from tests.people.personas import Personas, make_personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast(client: Client) -> Personas:
    cast = make_personas()
    client.force_login(cast.lead)
    return cast


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
    page = client.get(address).context["annotator"]
    results = [row.result for row in page.submissions]
    assert results[0] != results[1] == results[2]
    assert results[2] in page.submissions[2].known  # settled as they labeled it
    assert not any(row.differs for row in page.submissions)
    assert page.person.others.n == 3


def test_page_costs_the_same_for_many_submissions(client: Client, cast: Personas) -> None:
    label_traces(cast, 3)
    rater = Rater.objects.filter(project=cast.project).exclude(user=cast.annotator).latest("pk")
    address = reverse("dashboard:annotator", args=[cast.project.slug, rater.pk])
    costs = []
    for _ in range(2):
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
