"""The audit log."""

import datetime as dt

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from events import audit_log, origins
from events.models import Event, EventOrigin, QueuedEvent
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
            [audit_log.EventEntry("job.asked"), audit_log.EventEntry("job.retried", 3, "job:1", {"a": 1})],
            by=None,
            now=now,
        )
    assert len(queries) == 2
    assert [event.what for event in Event.objects.order_by("pk")] == ["job.asked", "job.asked", "job.retried"]


def test_event_of_a_notice_is_queued_with_it(now: dt.datetime) -> None:
    audit_log.log_event(what="import.done", by=None, now=now)
    audit_log.log_events([audit_log.EventEntry("job.asked"), audit_log.EventEntry("rater.paused")], by=None, now=now)
    assert [row.event.what for row in QueuedEvent.objects.order_by("pk")] == ["import.done", "rater.paused"]


def test_events_have_the_address_and_browser_of_the_request(now: dt.datetime) -> None:
    with origins.request_origin(address="2001:db8::1", browser="x\0" * 400):
        audit_log.log_event(what="job.asked", by=7, now=now)
        audit_log.log_events([audit_log.EventEntry("job.asked")] * 2, by=7, now=now)
    audit_log.log_event(what="job.asked", by=7, now=now)
    rows = EventOrigin.objects.order_by("pk")
    assert [(row.address, row.browser) for row in rows] == [("2001:db8::1", "x" * 300)] * 3
