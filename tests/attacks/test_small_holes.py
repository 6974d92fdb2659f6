"""Regression tests for small vulnerabilities found by manual testing."""

import datetime as dt
import json
import logging
import runpy
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotate import work_page, work_summary
from labeling.models import GoldAnswer
from labeling.models.gold import GoldUse
from labeling.quality.gold import make_gold
from tests import factories, servers
from tests.api import api_clients
from tests.people.personas import LoggedInPersonas

pytestmark = [pytest.mark.django_db, pytest.mark.fault]


@pytest.mark.parametrize("zone", ["Asia/Kathmandu", "America/St_Johns", "Pacific/Kiritimati", "Etc/GMT+12"])
def test_time_zone_of_the_browser_does_not_move_the_weeks_of_gold(zone: str) -> None:
    """Answers in the hours around the end of a week are in the same week for every zone."""
    monday = dt.datetime(2026, 11, 16, tzinfo=dt.UTC)
    rater = factories.make_rater(factories.make_project(shows_weekly_gold=True))
    for number in range(60):
        trace = factories.make_trace(rater.project)
        gold = make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=factories.NOW)
        GoldAnswer.objects.create(
            assignment=factories.make_submitted(rater, trace),
            gold=gold,
            project=rater.project,
            rater=rater,
            use="hidden",
            verdict="right",
            answered_at=monday + dt.timedelta(hours=number - 30),
        )
    assert rater.user is not None
    with timezone.override(zone):
        weeks = work_summary.summarize_weekly_gold(rater.user, monday + dt.timedelta(hours=40))
    assert [(week.begins, week.n) for week in weeks] == [(dt.date(2026, 11, 9), 30)]


@pytest.mark.parametrize("path", [".git/HEAD", ".git/config", ".env", "manage.py", "config/settings.py"])
@pytest.mark.parametrize("start", ["/", "/static/", "/static/../", "/static/%2e%2e/", "/static/..%2f", "/media/"])
def test_source_code_and_its_history_are_not_served(start: str, path: str, client: Client) -> None:
    assert client.get(start + path).status_code == 404


def test_long_idempotency_key_is_refused(personas: LoggedInPersonas) -> None:
    client = api_clients.make_client(personas.cast.owner)
    response = client.post(
        reverse("api:imports", args=[personas.cast.project.slug]),
        b"{}",
        content_type="application/x-ndjson",
        headers={"Idempotency-Key": "x" * 101},
    )
    assert "100" in api_clients.problem_detail(response)
    assert response.status_code == 422


def test_rater_sees_characters_that_change_the_order_of_a_text() -> None:
    rater = factories.make_rater(factories.make_project())
    problem = factories.make_problem(rater.project, "Is \u202eabc\u202c right?")
    trace = factories.make_trace(rater.project, ["if \u2066x\u2069:", "\u05d0\u200f"], problem=problem)
    shown = work_page.build_trace(factories.make_assignment(rater, trace).pk)
    texts = [shown["problem"]["text"], *(step["options"][0]["text"] for step in shown["steps"])]
    assert texts == ["Is ⟦U+202E⟧abc⟦U+202C⟧ right?", "if ⟦U+2066⟧x⟦U+2069⟧:", "\u05d0\u200f"]


@pytest.mark.parametrize(("key", "is_refused"), [("a" * 50, True), ("ab" * 8, True), ("0123456789abcdef" * 3, False)])
def test_server_refuses_a_weak_key_with_an_https_origin(
    key: str, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", key)
    monkeypatch.setenv("STEPMARK_ORIGIN", "https://labels.example.org")
    config: dict[str, Any] = runpy.run_path(str(servers.ROOT / "config" / "gunicorn.py"))
    log = SimpleNamespace(error_log=logging.Logger("gunicorn.error"))
    server = SimpleNamespace(log=log, wait_for_signals=None)
    if is_refused:
        with pytest.raises(SystemExit):
            config["on_starting"](server)
    else:
        config["on_starting"](server)
    assert config["umask"] == 0o077


def test_trace_is_refused(personas: LoggedInPersonas) -> None:
    """A response that repeats its request would show a script what only the browser sends."""
    project = reverse("dashboard:overview", args=[personas.cast.project.slug])
    for person, address in (("owner", "/"), ("owner", project), ("visitor", "/accounts/login/"), ("visitor", "/api/x")):
        response = personas.client(person).trace(address, headers={"X-Secret": "hunter2"})
        assert response.status_code in {404, 405}
        assert b"hunter2" not in response.content


def test_no_field_of_a_response_must_have_a_character(personas: LoggedInPersonas) -> None:
    """The schema once said that the failure of a job is never empty, so that clients refused every healthy job."""
    schema = Client().get(reverse("api:schema"), headers={"Accept": "application/json"}).json()
    assert "minLength" not in json.dumps(schema["components"])
    assert schema["components"]["schemas"]["Job"]["properties"]["failure"]["type"] == "string"


def test_personal_pages_are_not_stored(personas: LoggedInPersonas) -> None:
    for address in ("/", "/submitted/", reverse("account_change_password"), reverse("annotate:keys")):
        assert "no-store" in personas.client("annotator").get(address).headers["Cache-Control"]
    assert "no-store" in Client().get(reverse("api:projects")).headers["Cache-Control"]
