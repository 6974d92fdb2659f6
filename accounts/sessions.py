"""Sessions: rows of the database, read with one prepared statement.

A copy in the cache would cost more than it saves: the way there is as long, and a session that was ended would live on
in it. What is kept in one place only needs no cache, and is over at once."""

import datetime as dt
from typing import Any

from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session

import statements


class SessionStore(db.SessionStore):
    def load(self) -> dict[str, Any]:
        found = statements.rows(_LOAD, [self.session_key])
        if not found:
            self._session_key = None  # nobody chooses the key of a session
            return {}
        data: dict[str, Any] = self.decode(found[0][0])
        return data


_LOAD = "SELECT session_data FROM django_session WHERE session_key = %s AND expire_date > CURRENT_TIMESTAMP"


def forget_ended(*, now: dt.datetime) -> int:
    """Delete the sessions that have run out. Says how many there were."""
    return Session.objects.filter(expire_date__lt=now).delete()[0]
