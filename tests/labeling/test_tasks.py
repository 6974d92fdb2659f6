"""The tasks that beat sends."""

from django.conf import settings

import config.celery
from labeling import tasks


def test_lapse_due_is_sent_by_beat() -> None:
    scheduled = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    assert tasks.lapse_due.name in scheduled
    assert set(config.celery.app.tasks) >= {tasks.lapse_due.name}
