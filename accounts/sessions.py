"""Sessions: rows of the database that also say whose they are, so that one prepared statement tells with each request
what the session holds and who stands behind it.

A copy in the cache would cost more than it saves: the way there is as long, and a session that was ended would live on
in it. What is kept in one place only needs no cache, and is over at once."""

import datetime as dt
from typing import Any, cast

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends import db

import rawsql
from accounts import auth_backend
from accounts.models import Session


class SessionStore(db.SessionStore):
    person: auth_backend.UserRow | None = None  # as the database knew them when the session was read

    @classmethod
    def get_model_class(cls) -> type[Session]:
        return Session

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        session = cast(Session, super().create_model_instance(data))
        session.user_id = data.get(SESSION_KEY)
        return session

    def load(self) -> dict[str, Any]:
        found = rawsql.fetch_rows(_LOAD_SQL, {"key": self.session_key})
        if not found:
            self._session_key = None  # nobody chooses the key of a session
            return {}
        (text, *person) = found[0]
        self.person = tuple(person)
        data: dict[str, Any] = self.decode(text)
        return data


_LOAD_SQL = f"""
SELECT s.session_data, {", ".join(f"u.{name}" for name in auth_backend.USER_COLUMNS)}
FROM accounts_session s LEFT JOIN accounts_user u ON u.id = s.user_id
WHERE s.session_key = %(key)s AND s.expire_date > CURRENT_TIMESTAMP"""  # noqa: S608  made of constants


def delete_expired_sessions(*, now: dt.datetime) -> int:
    """Delete the sessions that have run out. Says how many there were."""
    return Session.objects.filter(expire_date__lt=now).delete()[0]
