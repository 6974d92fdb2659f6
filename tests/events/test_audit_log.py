"""The audit log."""

import datetime as dt

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from events import audit_log
from events.models import Event
from tests import factories

pytestmark = pytest.mark.django_db


def test_event_has_actor_action_subject_and_time(now: dt.datetime) -> None:
    ada = factories.make_user("ada")
    audit_log.log_event(what="role.changed", by=ada, now=now, project=3, subject="user:4", detail={"to": "lead"})
    event = Event.objects.get()
    assert (event.at, event.by, event.what, event.project) == (now, ada.pk, "role.changed", 3)
    assert (event.subject, event.detail) == ("user:4", {"to": "lead"})


def test_logging_takes_one_insert(now: dt.datetime) -> None:
    with CaptureQueriesContext(connection) as queries:
        audit_log.log_event(what="job.asked", by=7, now=now)
        audit_log.log_events(
            [audit_log.EventEntry("job.asked"), audit_log.EventEntry("job.failed", 3, "job:1", {"a": 1})],
            by=None,
            now=now,
        )
    assert len(queries) == 2
    assert [event.what for event in Event.objects.order_by("pk")] == ["job.asked", "job.asked", "job.failed"]
