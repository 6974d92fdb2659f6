"""Sessions: rows of the database, with a copy in the cache that saves the query for a few minutes.

Django's own cached sessions fail where the cache is away. Here requests get slower then, not wrong: the row is the
truth, and a copy that could not be taken back is forgotten soon."""

import logging
from collections.abc import Callable
from typing import Any

from django.contrib.sessions.backends import db
from django.core.cache import caches
from redis.exceptions import RedisError

COPY_LASTS = 300  # seconds
logger = logging.getLogger(__name__)


class SessionStore(db.SessionStore):
    def load(self) -> dict[str, Any]:
        copy: dict[str, Any] | None = _try(caches["sessions"].get, self._name(self.session_key))
        if copy is not None:
            return copy
        data: dict[str, Any] = super().load()
        if self.session_key is not None:  # the row was there
            self._copy(data)
        return data

    def save(self, must_create: bool = False) -> None:
        super().save(must_create)
        self._copy(self._get_session(no_load=must_create))  # type: ignore[attr-defined]  # Django's, without a stub

    def delete(self, session_key: str | None = None) -> None:
        super().delete(session_key)
        _try(caches["sessions"].delete, self._name(session_key or self.session_key))

    def _copy(self, data: dict[str, Any]) -> None:
        _try(caches["sessions"].set, self._name(self.session_key), data, COPY_LASTS)

    @staticmethod
    def _name(session_key: str | None) -> str:
        return f"session:{session_key}"


def _try(call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except RedisError as error:
        logger.warning("The cache is away, sessions are read from the database: %s", error)
        return None
