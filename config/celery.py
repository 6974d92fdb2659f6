"""The Celery application: `celery -A config.celery worker`."""

import os
from typing import Any

from celery import Celery
from celery.fixups.django import DjangoWorkerFixup
from django.db import close_old_connections

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")


def _close_unusable_connections(_fixup: DjangoWorkerFixup, **_: Any) -> None:
    """Close a thread's connections before and after a task as after a request: those that are old, or had an error.
    Celery would close them all, and a new one costs several times as much as most tasks."""
    close_old_connections()


DjangoWorkerFixup.close_database = _close_unusable_connections
app = Celery("stepmark")
app.set_default()  # for every thread: the web server's threads publish too
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
