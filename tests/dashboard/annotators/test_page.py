"""The data of the list of annotators: last trace, selection of a page, downloaded table."""

import csv
import datetime as dt
import io
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from dashboard.annotators import page
from labeling.models import Lane, ProjectStats, Rater
from labeling.models.queue import SamplingSource
from labeling.projects import lifecycle
from tests import factories
from tests.labeling.quality import submitted_work
from tests.people.personas import make_personas

pytestmark = pytest.mark.django_db


def test_last_trace_is_the_newest_of_all_lanes(now: dt.datetime) -> None:
    cast = make_personas()
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
    with CaptureQueriesContext(connection) as queries:
        seen = {person.rater: person.seen_at for person in page.load_annotators(actor, now).people}
    mine = Rater.objects.get(project=project, user=cast.annotator)
    assert seen == {anna: now - dt.timedelta(days=3), ben: now - dt.timedelta(days=4), cora: None, mine: None}
    assert all(page.load_annotator_summary(rater, actor, now).seen_at == at for rater, at in seen.items())
    [query] = [each["sql"] for each in queries if '"labeling_assignment"' in each["sql"]]
    assert query.count("LIMIT 1") == 3  # one row per lane, never all of them


def test_full_page_lists_paused_annotators_then_those_with_most_steps(
    now: dt.datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    cast = make_personas()
    raters = [factories.make_rater(cast.project, kind="member", user=factories.make_user()) for _ in range(4)]
    figures = {str(rater.pk): {"steps": steps} for rater, steps in zip(raters, (5, 0, 9, 7), strict=True)}
    ProjectStats.objects.create(project=cast.project, content={"raters": figures, "watching": {}}, computed_at=now)
    Rater.objects.filter(pk=raters[1].pk).update(paused_at=now)
    monkeypatch.setattr(page, "MAX_LISTED", 3)
    annotators = page.load_annotators(cast.membership(cast.lead), now)
    assert [person.rater for person in annotators.people] == [raters[2], raters[3], raters[1]]
    assert annotators.n == 5


def test_csv_has_pay_as_a_number_and_pseudonyms(client: Client) -> None:
    cast = make_personas()
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
