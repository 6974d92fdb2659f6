"""The scheduled tasks."""

import pytest
from celery import Task
from django.conf import settings

import config.celery
from accounts.tasks import delete_expired_sessions
from jobs import scheduler
from labeling import tasks


@pytest.mark.parametrize(
    "task", [tasks.lapse_due_leases, tasks.refresh_quality, tasks.enqueue_recounts, delete_expired_sessions]
)
def test_task_is_sent_by_beat(task: Task) -> None:
    scheduled = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()} | set(scheduler._checks)
    assert task.name in scheduled
    assert task.name in config.celery.app.tasks
