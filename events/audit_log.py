"""Append to the audit log of people and the platform. Only this module writes events."""

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import rawsql
from accounts.models import User
from events.models import Event

_INSERT_EVENT = "INSERT INTO events_event (at, by, what, project, subject, detail) VALUES (%s, %s, %s, %s, %s, %s)"


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
) -> None:
    """Log that `by` did `what` ("guideline.published") to `subject` ("guideline:4")."""
    # A prepared statement: every submission logs an event.
    columns = (now, _user_id(by), what, project, subject, json.dumps(dict(detail or {})))
    rawsql.fetch_rows(_INSERT_EVENT, columns)


def log_events(entries: Iterable[EventEntry], *, by: User | int | None, now: dt.datetime) -> None:
    """Log several events in one insert."""
    Event.objects.bulk_create(
        Event(at=now, by=_user_id(by), what=what, project=project, subject=subject, detail=dict(detail or {}))
        for what, project, subject, detail in entries
    )


def _user_id(by: User | int | None) -> int | None:
    return by.pk if isinstance(by, User) else by
