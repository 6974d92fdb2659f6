"""The address and browser of the request that is being handled, so that events can name them.

Middleware sets them; functions of the domain do not know about requests. Requests of the work page do not set them:
a rater sends one each second.
"""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from django.db.models import Q

from events.models import EventOrigin

MAX_BROWSER_LENGTH = 300


class RequestOrigin(NamedTuple):
    address: str | None
    browser: str


_current_origin: ContextVar[RequestOrigin | None] = ContextVar("origin of the request", default=None)


def make_origin(*, address: str | None, browser: str) -> RequestOrigin:
    return RequestOrigin(address, browser.replace("\0", "")[:MAX_BROWSER_LENGTH])


@contextmanager
def request_origin(*, address: str | None, browser: str) -> Iterator[None]:
    """Add this address and browser to every event in the block."""
    token = _current_origin.set(make_origin(address=address, browser=browser))
    try:
        yield
    finally:
        _current_origin.reset(token)


def current_origin() -> RequestOrigin | None:
    return _current_origin.get()


def delete_old_origins(*, now: dt.datetime, days: int) -> int:
    """Delete addresses and browsers of events older than `days`. The events stay."""
    old = EventOrigin.objects.filter(event__at__lt=now - dt.timedelta(days=days))
    return old.delete()[0]


def erase_origins(*, user_id: int, now: dt.datetime) -> None:
    """Delete the addresses and browsers of all events by or about a user up to now."""
    of_user = Q(event__by=user_id) | Q(event__subject=f"user:{user_id}")
    EventOrigin.objects.filter(of_user, event__at__lte=now).delete()
