"""Sessions and their users, which one prepared statement loads together.

They are not cached: a cache lookup takes as long as the query, and a session that was ended would remain in the
cache. allauth's backend checks passwords; the one here loads the user of each request."""

import datetime as dt
from contextvars import ContextVar
from typing import Any, cast

from allauth.account.auth_backends import AuthenticationBackend
from django.contrib import auth
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.sessions.backends import db
from django.db import DEFAULT_DB_ALIAS
from django.db.models import DateTimeField
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

import rawsql
from accounts.models import Session, User

# In the order of the model. Timestamps are deferred: few requests need them.
_USER_COLUMNS = [field.attname for field in User._meta.concrete_fields if not isinstance(field, DateTimeField)]
_LOAD_SESSION_SQL = f"""
SELECT s.session_data, {", ".join(f"u.{name}" for name in _USER_COLUMNS)}
FROM accounts_session s LEFT JOIN accounts_user u ON u.id = s.user_id
WHERE s.session_key = %(key)s AND s.expire_date > CURRENT_TIMESTAMP"""  # noqa: S608  made of constants

_session_user_row: ContextVar[tuple[Any, ...] | None] = ContextVar("user row of the session", default=None)


class SessionStore(db.SessionStore):
    user_row: tuple[Any, ...] | None = None  # loaded together with the session

    @classmethod
    def get_model_class(cls) -> type[Session]:
        return Session

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        session = cast(Session, super().create_model_instance(data))
        session.user_id = data.get(auth.SESSION_KEY)
        return session

    def load(self) -> dict[str, Any]:
        rows = rawsql.fetch_rows(_LOAD_SESSION_SQL, {"key": self.session_key})
        if not rows:
            self._session_key = None  # never adopt a key that the client chose
            return {}
        text, *user_row = rows[0]
        self.user_row = tuple(user_row)
        data: dict[str, Any] = self.decode(text)
        return data


class PreloadedUserBackend(AuthenticationBackend):  # type: ignore[misc]  # allauth ships no types
    def get_user(self, user_id: Any) -> User | None:
        row = _session_user_row.get()
        if row is None or row[0] != int(user_id):
            return cast("User | None", super().get_user(user_id))
        user = User.from_db(DEFAULT_DB_ALIAS, _USER_COLUMNS, row)
        return user if self.user_can_authenticate(user) else None


class UserRequest(HttpRequest):
    """A request for a page that requires login. For annotations: the middleware below sets the user."""

    user: User


class SessionUserMiddleware(AuthenticationMiddleware):
    """Django's authentication middleware, with the user row that was loaded together with the session."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        request.user = SimpleLazyObject(lambda: _load_user(request))  # type: ignore[assignment]  # as Django does


def _load_user(request: HttpRequest) -> Any:
    request.session.get(auth.SESSION_KEY)  # loads the session
    token = _session_user_row.set(getattr(request.session, "user_row", None))
    try:
        return auth.get_user(request)
    finally:
        _session_user_row.reset(token)


def delete_expired_sessions(*, now: dt.datetime) -> int:
    """Delete expired sessions and return how many there were."""
    return Session.objects.filter(expire_date__lt=now).delete()[0]
