"""The audit log."""

import datetime as dt

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from events import audit_log
from events.models import Event, EventOrigin
from tests import factories

pytestmark = pytest.mark.django_db
HOME = audit_log.RequestOrigin("127.0.0.1", "a browser")


def test_event_has_actor_action_subject_and_time(now: dt.datetime) -> None:
    ada = factories.make_user("ada")
    logged = audit_log.log_event(
        what="role.changed", by=ada, now=now, project=3, subject="user:4", detail={"to": "lead"}
    )
    event = Event.objects.get(pk=logged.pk)
    assert (event.at, event.by, event.what, event.project) == (now, ada.pk, "role.changed", 3)
    assert (event.subject, event.detail) == ("user:4", {"to": "lead"})
    assert not EventOrigin.objects.exists()


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


def test_long_agent_is_truncated(now: dt.datetime) -> None:
    logged = audit_log.log_event(what="login", by=None, now=now, origin=audit_log.RequestOrigin(None, "x" * 1000))
    assert len(logged.origin.agent) == 300


def test_origins_are_erased_by_time_person_or_both(now: dt.datetime) -> None:
    for by, day in [(1, 0), (1, 2), (2, 0), (2, 2)]:
        audit_log.log_event(what="login", by=by, now=now + dt.timedelta(days=day), origin=HOME)
    later = now + dt.timedelta(days=1)
    assert audit_log.erase_origins(before=later, by=1) == 1
    assert audit_log.erase_origins(by=1) == 1
    assert audit_log.erase_origins(before=later) == 1
    assert (EventOrigin.objects.get().event.by, Event.objects.count()) == (2, 4)


def test_erasing_all_origins_is_refused() -> None:
    with pytest.raises(ValueError, match="erase_origins"):
        audit_log.erase_origins()
