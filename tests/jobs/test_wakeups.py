"""Tasks are requested when their work appears, at most once within the delay."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest
from celery.signals import before_task_publish
from django.core.cache import cache
from django.db import transaction
from pytest_django import DjangoCaptureOnCommitCallbacks

from jobs import wakeups
from labeling.models import ProjectStats
from labeling.quality import project_stats, settlements
from tests import factories
from tests.annotate.views.test_work import AtWork, batch, rating

pytestmark = pytest.mark.django_db


SentTasks = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def sent() -> Iterator[SentTasks]:
    """Collect the tasks that are handed to the broker, with the headers of their messages."""
    tasks: SentTasks = []

    def note(sender: str, headers: dict[str, Any], **_: Any) -> None:
        tasks.append((sender, {**headers, "sent": dt.datetime.now(dt.UTC)}))

    before_task_publish.connect(note)
    forget_requests()
    yield tasks
    before_task_publish.disconnect(note)
    forget_requests()


def forget_requests(*, are_recent: bool = False) -> None:
    """As after the delay of all requests. `are_recent`: work is steady."""
    wakeups._covered_until.clear()
    for task in (settlements.REFRESH_TASK, "tests.task"):
        cache.delete(f"requested:{task}")
        cache.delete(f"requested:{task}:awaited")
        if not are_recent:
            cache.delete(f"recent:{task}")


def delay_of(sent: tuple[str, dict[str, Any]]) -> float:
    """Return the seconds from the publication of a task to its time."""
    return float((dt.datetime.fromisoformat(sent[1]["eta"]) - sent[1]["sent"]).total_seconds())


def test_submit_requests_the_settling_once(
    sent: SentTasks, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    project = factories.make_project(overlap=1)
    lane = factories.make_lane(project)
    for _ in range(2):
        factories.make_entry(lane, factories.make_trace(project, ["One."]))
    me = AtWork(project)
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(2):
            status, _answer = me.post(f"{me.claim()['assignment']}/submit", batch(rating(1, 0, 1)))
            assert status == 200
    assert [name for name, _ in sent] == [settlements.REFRESH_TASK]
    due, expires = (dt.datetime.fromisoformat(sent[0][1][name]) for name in ("eta", "expires"))
    assert expires - due > dt.timedelta(seconds=wakeups.DELAY_SECONDS)


def test_request_is_sent_again_after_the_delay(
    sent: SentTasks, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    for _ in range(2):
        with django_capture_on_commit_callbacks(execute=True):
            wakeups.request_task("tests.task")
        forget_requests()
    assert len(sent) == 2
    assert all(delay_of(each) <= wakeups.DELAY_SECONDS for each in sent)


def test_steady_requests_are_served_less_often(
    sent: SentTasks, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    for _ in range(3):
        with django_capture_on_commit_callbacks(execute=True):
            wakeups.request_task("tests.task")
        forget_requests(are_recent=True)
    assert all(delay_of(each) <= wakeups.BUSY_DELAY_SECONDS for each in sent)
    assert delay_of(sent[0]) <= wakeups.DELAY_SECONDS < delay_of(sent[1])
    with django_capture_on_commit_callbacks(execute=True):
        wakeups.request_task("tests.task", is_awaited=True)
    assert delay_of(sent[-1]) <= wakeups.DELAY_SECONDS


def test_task_that_is_being_served_requests_itself_only_afterward(
    sent: SentTasks, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True), wakeups.serving("tests.task"):
        wakeups.request_task("tests.task")
        wakeups.request_task(settlements.REFRESH_TASK)
    assert [name for name, _ in sent] == [settlements.REFRESH_TASK]


def test_rolled_back_transaction_requests_nothing(sent: SentTasks) -> None:
    with transaction.atomic():
        project_stats.mark_stats_stale(project_id=factories.make_project().pk, now=factories.NOW)
        transaction.set_rollback(True)
    assert (sent, ProjectStats.objects.count()) == ([], 0)
