"""A worker keeps its connection to the database from task to task."""

import pytest
from celery.fixups.django import DjangoWorkerFixup
from django.db import connection

from config.celery import app
from jobs.tasks import sweep

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("real_connections")]


def test_a_task_leaves_its_connection_to_the_next_one() -> None:
    connection.ensure_connection()
    link, fixup = connection.connection, DjangoWorkerFixup(app)
    fixup.on_task_prerun(sender=sweep)
    fixup.on_task_postrun(sender=sweep)
    assert connection.connection is link


def test_a_connection_that_is_too_old_is_closed_after_a_task() -> None:
    connection.ensure_connection()
    connection.close_at = 0.0
    DjangoWorkerFixup(app).on_task_postrun(sender=sweep)
    assert connection.connection is None
