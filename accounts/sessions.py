"""Database sessions that refer to their user, so that one prepared statement loads the session and the user.

They are not cached: a cache lookup takes as long as the query, and a session that was ended would remain in the
cache."""

import datetime as dt
from typing import Any, cast

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends import db

import rawsql
from accounts import auth_backend
from accounts.models import Session


class SessionStore(db.SessionStore):
    user_row: auth_backend.UserRow | None = None  # loaded together with the session

    @classmethod
    def get_model_class(cls) -> type[Session]:
        return Session

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        session = cast(Session, super().create_model_instance(data))
        session.user_id = data.get(SESSION_KEY)
        return session

    def load(self) -> dict[str, Any]:
        rows = rawsql.fetch_rows(_LOAD_SQL, {"key": self.session_key})
        if not rows:
            self._session_key = None  # never adopt a key that the client chose
            return {}
        (text, *user_row) = rows[0]
        self.user_row = tuple(user_row)
        data: dict[str, Any] = self.decode(text)
        return data


_LOAD_SQL = f"""
SELECT s.session_data, {", ".join(f"u.{name}" for name in auth_backend.USER_COLUMNS)}
FROM accounts_session s LEFT JOIN accounts_user u ON u.id = s.user_id
WHERE s.session_key = %(key)s AND s.expire_date > CURRENT_TIMESTAMP"""  # noqa: S608  made of constants


def delete_expired_sessions(*, now: dt.datetime) -> int:
    """Delete expired sessions and return how many there were."""
    return Session.objects.filter(expire_date__lt=now).delete()[0]
