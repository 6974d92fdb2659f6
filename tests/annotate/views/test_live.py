"""The messages of the page of live labeling."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from accounts import rate_limits
from labeling.models import Rater
from live.models import LiveOption, LiveSession, LiveTurn
from people import members
from people.models import Role
from tests import factories
from tests.live import live_project
from tests.live.step_servers import StepServer, running_steps

pytestmark = pytest.mark.django_db


@pytest.fixture
def rater() -> Rater:
    project, user = live_project.make_live_project(slug="sums", reserve_problem_share=0), factories.make_user()
    members.add_member(project=project, user=user, role=Role.ANNOTATOR, now=factories.NOW)
    return Rater.objects.select_related("project").get(user=user)


@pytest.fixture
def session(rater: Rater) -> Iterator[LiveSession]:
    with running_steps(StepServer()) as address:
        live_project.make_policy(rater.project, address)
        session = live_project.begin(rater)
        live_project.answer_all(session)
        yield session


@pytest.fixture
def page(client: Client, rater: Rater) -> Client:
    assert rater.user is not None
    client.force_login(rater.user)
    return client


def send(page: Client, session: LiveSession, verb: str, **message: Any) -> tuple[int, Any]:
    url = reverse(f"annotate:{verb}", args=[session.pk])
    response = page.post(url, json.dumps({"position": 0, **message}), content_type="application/json")
    return response.status_code, json.loads(response.content)


def test_work_page_leads_to_the_live_page(page: Client, session: LiveSession) -> None:
    response = page.get(reverse("annotate:work", args=["sums"]), follow=True)
    assert response.redirect_chain[-1][0] == "/live/sums/"
    content = response.content.decode()
    assert content.count("data-option=") == 3
    assert 'data-state="options"' in content


def test_home_page_counts_problems(page: Client, session: LiveSession) -> None:
    assert f'href="{reverse("annotate:work", args=["sums"])}"'.encode() in page.get("/").content


def test_choice_returns_the_next_stage(page: Client, session: LiveSession) -> None:
    page.get("/live/sums/")  # fixes the order of the options
    ratings = [{"index": index, "rating": 1} for index in range(3)]
    assert send(page, session, "record_live", ratings=ratings[:1], draft="Mine", active_ms=50) == (200, {"position": 0})
    assert LiveOption.objects.filter(rating=1).count() == 1
    status, refusal = send(page, session, "choose_live", index=0)
    assert (status, refusal["code"]) == (409, "unrated")
    assert LiveTurn.objects.get().draft == "Mine"
    status, stage = send(page, session, "choose_live", index=0, ratings=ratings)
    assert (status, stage["state"], stage["position"]) == (200, "waiting", 1)
    live_project.answer_all(session)
    turn = json.loads(page.get(reverse("annotate:live_turn", args=[session.pk])).content)
    assert turn["state"] == "options"
    assert 'data-step="1"' in turn["html"]


def test_messages_beyond_the_quota_are_refused_for_a_while(
    page: Client, session: LiveSession, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    page.get("/live/sums/")
    settings.RATE_LIMIT_FACTOR = 1
    for action, amount in {"claim": 1, "writes": 4}.items():
        monkeypatch.setitem(rate_limits.LIMITS, action, (rate_limits.Limit("rater", amount, rate_limits.DAY),))
    cache.clear()
    ratings = [{"index": index, "rating": 1} for index in range(3)]
    assert send(page, session, "record_live", ratings=ratings)[0] == 200
    status, refusal = send(page, session, "choose_live", index=0, ratings=ratings)
    assert (status, refusal["code"]) == (429, "too_many_requests")
    assert LiveTurn.objects.get().ended_at is None
    begin = reverse("annotate:begin_live", args=["sums"])
    assert [page.post(begin).status_code for _ in range(2)] == [302, 429]


@pytest.mark.fault
def test_endings_and_put_aside(page: Client, session: LiveSession, rater: Rater) -> None:
    assert send(page, session, "end_live", reason="give_up")[1]["code"] == "no_reason"
    assert send(page, session, "end_live", reason="nothing")[0] == 422
    assert send(page, session, "put_live_aside", draft="Mine")[1]["state"] == "aside"
    assert b"data-session=" in page.get("/live/sums/").content
    page.post(reverse("annotate:resume_live", args=[session.pk]))
    assert send(page, session, "write_live", text="The answer is 3.", ends_solution=True)[1]["state"] == "ended"
    response = page.get("/live/sums/")
    assert b"begin-live" in response.content
    page.post("/live/sums/begin")
    assert LiveSession.objects.filter(rater=rater, state="open").count() == 1


def test_page_without_a_policy_says_so(page: Client, rater: Rater) -> None:
    response = page.post("/live/sums/begin", follow=True)
    assert b'data-empty="policy"' in response.content
    assert b'data-message="warning"' in response.content
