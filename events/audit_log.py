"""Append to the audit log of people and the platform. Only this module writes events."""

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction

import rawsql
from events import origins
from events.models import Event, EventOrigin, QueuedEvent

_INSERT_EVENT = "INSERT INTO events_event (at, by, what, project, subject, detail) VALUES (%s, %s, %s, %s, %s, %s)"
_INSERT_WITH_ORIGIN = f"""
WITH event AS ({_INSERT_EVENT} RETURNING id)
INSERT INTO events_eventorigin (event_id, address, browser)
SELECT id, %s::inet, %s FROM event"""  # noqa: S608  made of constants

# For a statement that logs an event with what it does, once for each row of the relation that follows.
INSERT_EVENT_FOR = """
INSERT INTO events_event (at, by, what, project, subject, detail)
SELECT %(event_at)s::timestamptz, %(event_by)s::bigint, %(event_what)s, %(event_project)s::bigint, %(event_subject)s,
  %(event_detail)s::jsonb FROM """

Actor = AbstractBaseUser | int | None  # `accounts` imports this package, so its User cannot be named here


_EVENT_PARAMETERS = ("event_at", "event_by", "event_what", "event_project", "event_subject", "event_detail")
_queued: set[str] = set()


def queue_events(*names: str) -> None:
    """Queue each event with one of these names, for `notices`. Call this in `AppConfig.ready`."""
    _queued.update(names)


class EventEntry(NamedTuple):
    """One of several events with the same time and actor."""

    what: str
    project: int | None = None
    subject: str = ""
    detail: Mapping[str, Any] | None = None


def log_event(
    *,
    what: str,
    by: Actor,
    now: dt.datetime,
    project: int | None = None,
    subject: str = "",
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Log that `by` did `what` ("guideline.published") to `subject` ("guideline:4"), with the origin of the request."""
    # A prepared statement: every submission logs an event.
    if what in _queued:
        log_events([EventEntry(what, project, subject, detail)], by=by, now=now)
        return
    columns = (now, _user_id(by), what, project, subject, json.dumps(dict(detail or {})))
    origin = origins.current_origin()
    if origin is None:
        rawsql.fetch_rows(_INSERT_EVENT, columns)
    else:
        rawsql.fetch_rows(_INSERT_WITH_ORIGIN, (*columns, *origin))


def plain_event(entry: EventEntry, *, by: Actor, now: dt.datetime) -> dict[str, Any] | None:
    """Return the parameters of INSERT_EVENT_FOR, or None if only `log_event` can log the event: it has more rows."""
    if entry.what in _queued or origins.current_origin() is not None:
        return None
    detail = json.dumps(dict(entry.detail or {}))
    values = (now, _user_id(by), entry.what, entry.project, entry.subject, detail)
    return dict(zip(_EVENT_PARAMETERS, values, strict=True))


def log_events(entries: Iterable[EventEntry], *, by: Actor, now: dt.datetime) -> None:
    """Log several events in one insert."""
    origin = origins.current_origin()
    with transaction.atomic(savepoint=False):
        rows = Event.objects.bulk_create(
            Event(at=now, by=_user_id(by), what=what, project=project, subject=subject, detail=dict(detail or {}))
            for what, project, subject, detail in entries
        )
        QueuedEvent.objects.bulk_create(QueuedEvent(event=row) for row in rows if row.what in _queued)
        if origin:
            EventOrigin.objects.bulk_create(
                EventOrigin(event=row, address=origin.address, browser=origin.browser) for row in rows
            )


def log_download(
    *,
    file: str,
    by: Actor,
    now: dt.datetime,
    project: int | None = None,
    has_names: bool = False,
    n_rows: int | None = None,
) -> None:
    """Log who downloaded a file, and whether it names people. Files of snapshots have events of their own."""
    subject = f"project:{project}" if project else ""
    detail: dict[str, Any] = {"file": file, "has_names": has_names}
    if n_rows is not None:
        detail["rows"] = n_rows
    log_event(what="download.made", by=by, now=now, project=project, subject=subject, detail=detail)


def _user_id(by: Actor) -> int | None:
    return by.pk if isinstance(by, AbstractBaseUser) else by
