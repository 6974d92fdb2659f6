"""Who stands behind a session. allauth's backend checks passwords; this one finds the person, with each request."""

from typing import Any

from allauth.account.auth_backends import AuthenticationBackend
from django.db import DEFAULT_DB_ALIAS
from django.db.models import BooleanField, DateTimeField

import statements
from accounts.models import User

# In the order of the model. Times are left out: one is read when somebody asks for it.
_FIELDS = [field for field in User._meta.concrete_fields if not isinstance(field, DateTimeField)]
_NAMES = [field.attname for field in _FIELDS]
_PERSON = f"SELECT {', '.join(_NAMES)} FROM accounts_user WHERE id = %s"  # noqa: S608  made of constants


class Backend(AuthenticationBackend):  # type: ignore[misc]  # allauth ships no types
    def get_user(self, user_id: Any) -> User | None:
        found = statements.rows(_PERSON, [user_id])
        if not found:
            return None
        # SQLite keeps 0 and 1.
        told = [
            bool(each) if isinstance(field, BooleanField) else each
            for field, each in zip(_FIELDS, found[0], strict=True)
        ]
        user = User.from_db(DEFAULT_DB_ALIAS, _NAMES, told)
        return user if self.user_can_authenticate(user) else None
