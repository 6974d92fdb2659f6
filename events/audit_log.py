"""Append to the audit log of people and the platform. Only this module writes events and erases their origins."""

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import rawsql
from accounts.models import User
from events.models import Event, EventOrigin

_AGENT_LENGTH = 300


class RequestOrigin(NamedTuple):
    """Where a request came from. Personal data, stored separately from the event."""

    address: str | None
    agent: str = ""


class EventEntry(NamedTuple):
    """One of several events with the same time and actor."""

    what: str
    project: int | None = None
    subject: str = ""
    detail: Mapping[str, Any] | None = None


def log_event(
    *,
    what: str,
    by: User | int | None,
    now: dt.datetime,
    project: int | None = None,
    subject: str = "",
    detail: Mapping[str, Any] | None = None,
    origin: RequestOrigin | None = None,
) -> Event:
    """Log that `by` did `what` ("guideline.published") to `subject` ("guideline:4")."""
    event = _build_event(EventEntry(what, project, subject, detail), by, now)
    # A prepared statement: every submission logs an event.
    columns = (now, event.by, what, project, subject, json.dumps(event.detail))
    ((event.pk,),) = rawsql.fetch_rows(_INSERT_EVENT, columns)
    event._state.adding = False
    if origin is not None:
        EventOrigin.objects.create(event=event, address=origin.address, agent=origin.agent[:_AGENT_LENGTH])
    return event


_INSERT_EVENT = (
    "INSERT INTO events_event (at, by, what, project, subject, detail) VALUES (%s, %s, %s, %s, %s, %s) RETURNING id"
)


def log_events(entries: Iterable[EventEntry], *, by: User | int | None, now: dt.datetime) -> None:
    """Log several events in one insert."""
    Event.objects.bulk_create([_build_event(entry, by, now) for entry in entries])


def erase_origins(*, before: dt.datetime | None = None, by: User | int | None = None) -> int:
    """Erase addresses and agents of events before a time, of one person, or both. Return the number erased."""
    if before is None and by is None:
        raise ValueError("erase_origins needs `before`, `by`, or both")
    origins = EventOrigin.objects.all()
    if before is not None:
        origins = origins.filter(event__at__lt=before)
    if by is not None:
        origins = origins.filter(event__by=_user_id(by))
    return origins.delete()[0]


def _build_event(entry: EventEntry, by: User | int | None, now: dt.datetime) -> Event:
    return Event(
        at=now,
        by=_user_id(by),
        what=entry.what,
        project=entry.project,
        subject=entry.subject,
        detail=dict(entry.detail or {}),
    )


def _user_id(by: User | int | None) -> int | None:
    return by.pk if isinstance(by, User) else by
