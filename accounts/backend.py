"""Who stands behind a session. allauth's backend checks passwords; this one finds the person, with each request."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from allauth.account.auth_backends import AuthenticationBackend
from django.db import DEFAULT_DB_ALIAS
from django.db.models import DateTimeField

import statements
from accounts.models import User

Row = tuple[Any, ...]

# In the order of the model. Times are left out: one is read when somebody asks for it.
_FIELDS = [field for field in User._meta.concrete_fields if not isinstance(field, DateTimeField)]
NAMES = [field.attname for field in _FIELDS]
_PERSON = f"SELECT {', '.join(NAMES)} FROM accounts_user WHERE id = %(user)s"  # noqa: S608  made of constants

_known: ContextVar[Row | None] = ContextVar("the person whom the session brought along", default=None)


@contextmanager
def knowing(row: Row | None) -> Iterator[None]:
    """Whoever is asked for inside need not be read again, if it is this one."""
    token = _known.set(row)
    try:
        yield
    finally:
        _known.reset(token)


class Backend(AuthenticationBackend):  # type: ignore[misc]  # allauth ships no types
    def get_user(self, user_id: Any) -> User | None:
        row = _known.get()
        found = [row] if row and row[0] == int(user_id) else statements.rows(_PERSON, {"user": user_id})
        if not found:
            return None
        user = User.from_db(DEFAULT_DB_ALIAS, NAMES, found[0])
        return user if self.user_can_authenticate(user) else None
