"""One rater can neither fill the disk, nor hold the queue, nor guess passwords indefinitely."""

from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from accounts import rate_limits
from labeling.models import Assignment, Project, RatingEdit
from tests import factories
from tests.annotate.views.test_work import AtWork

pytestmark = pytest.mark.django_db

COMMENT = "x" * 20_000


@pytest.fixture(autouse=True)
def _limits_are_on(settings: Any) -> None:
    settings.RATE_LIMIT_FACTOR = 1
    cache.clear()


@pytest.fixture
def project() -> Project:
    project = factories.make_project(overlap=1)
    lane = factories.make_lane(project, "uniform")
    for _ in range(8):
        factories.make_entry(lane, factories.make_trace(project))
    return project


def test_rater_cannot_fill_the_disk(project: Project) -> None:
    """Comments are kept for good, so their bytes are limited. The browser learns when to send them again."""
    me = AtWork(project)
    assignment = me.claim()["assignment"]
    write = {"seen": 0, "kind": "comment", "step": 0, "option": None, "rating": None, "text": COMMENT}
    statuses = []
    for number in range(8):
        writes = [{**write, "sequence": 40 * number + n + 1} for n in range(40)]
        status, answer = me.post(f"{assignment}/record", {"client": "c1", "writes": writes})
        statuses.append((status, answer.get("code")))
    assert statuses[0] == (200, None)
    assert statuses[-1] == (429, "too_many_requests")
    stored = sum(len(text) for text in RatingEdit.objects.values_list("text", flat=True))
    assert stored <= 2 * rate_limits.LIMITS["write_bytes"][0].amount


def test_rater_opens_at_most_a_few_traces_at_a_time(project: Project) -> None:
    me = AtWork(project)
    shown: list[int] = []
    statuses = []
    for _ in range(6):
        status, answer = me.post(f"{project.slug}/claim", {"opened": True, "shown": shown})
        statuses.append(status)
        shown += [answer["assignment"]] if status == 200 else []
    assert statuses == [200] * project.open_limit + [409] * (6 - project.open_limit)
    assert Assignment.objects.opened().count() == project.open_limit <= 3


def test_current_password_cannot_be_guessed_without_an_end() -> None:
    client = Client()
    client.force_login(factories.make_user(password="seven green ladders"))
    guess = {"current": "wrong", "password": "eight blue ladders"}
    statuses = [client.post(reverse("account_change_password"), guess).status_code for _ in range(8)]
    assert statuses[0] == 200 or statuses[0] == 422
    assert statuses[-1] == 429
