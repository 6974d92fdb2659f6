"""Tasks are requested when their work appears, at most once within the delay."""

import datetime as dt
import time
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
        tasks.append((sender, headers))

    before_task_publish.connect(note)
    wakeups._requested_at.clear()
    cache.delete(f"requested:{settlements.REFRESH_TASK}")
    yield tasks
    before_task_publish.disconnect(note)
    wakeups._requested_at.clear()


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
        wakeups._requested_at["tests.task"] = time.monotonic() - wakeups.DELAY_SECONDS - 1
        cache.delete("requested:tests.task")  # as after its timeout
    assert len(sent) == 2


def test_rolled_back_transaction_requests_nothing(sent: SentTasks) -> None:
    with transaction.atomic():
        project_stats.mark_stats_stale(project_id=factories.make_project().pk, now=factories.NOW)
        transaction.set_rollback(True)
    assert (sent, ProjectStats.objects.count()) == ([], 0)
