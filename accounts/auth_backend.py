"""Load the user of a session. allauth's backend checks passwords; this one loads the user for each request."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from allauth.account.auth_backends import AuthenticationBackend
from django.db import DEFAULT_DB_ALIAS
from django.db.models import DateTimeField

import rawsql
from accounts.models import User

UserRow = tuple[Any, ...]

# In the order of the model. Timestamps are deferred: few requests need them.
_FIELDS = [field for field in User._meta.concrete_fields if not isinstance(field, DateTimeField)]
USER_COLUMNS = [field.attname for field in _FIELDS]
_USER_SQL = f"SELECT {', '.join(USER_COLUMNS)} FROM accounts_user WHERE id = %(user)s"  # noqa: S608  made of constants

_preloaded_row: ContextVar[UserRow | None] = ContextVar("preloaded user row", default=None)


@contextmanager
def preloaded_user(row: UserRow | None) -> Iterator[None]:
    """Let `get_user` use this row instead of a query, if it is asked for the same user."""
    token = _preloaded_row.set(row)
    try:
        yield
    finally:
        _preloaded_row.reset(token)


class PreloadedUserBackend(AuthenticationBackend):  # type: ignore[misc]  # allauth ships no types
    def get_user(self, user_id: Any) -> User | None:
        row = _preloaded_row.get()
        rows = [row] if row and row[0] == int(user_id) else rawsql.fetch_rows(_USER_SQL, {"user": user_id})
        if not rows:
            return None
        user = User.from_db(DEFAULT_DB_ALIAS, USER_COLUMNS, rows[0])
        return user if self.user_can_authenticate(user) else None
