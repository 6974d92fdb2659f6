"""Appends to the log of what people and the platform did. The only module that writes events, and the only one that
erases where they came from."""

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import rawsql
from accounts.models import User
from events.models import Event, EventOrigin

_AGENT_LENGTH = 300


class RequestOrigin(NamedTuple):
    """Where a request came from. Personal data: kept apart from the event, and erased on its own."""

    address: str | None
    agent: str = ""


class EventEntry(NamedTuple):
    """One event among many of the same moment and person."""

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
    """Say that `by` did `what` ("guideline.published") to `subject` ("guideline:4"). One insert; two with an origin."""
    event = _build_event(EventEntry(what, project, subject, detail), by, now)
    # Written by hand: every submission says something here.
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
    """Several events of one moment in one insert."""
    Event.objects.bulk_create([_build_event(entry, by, now) for entry in entries])


def erase_origins(*, before: dt.datetime | None = None, by: User | int | None = None) -> int:
    """Forget addresses and agents: of events before a time, of one person, or of both at once. Says how many."""
    if before is None and by is None:
        raise ValueError("Say whose origins to erase, or from before when.")
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
