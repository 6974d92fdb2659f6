"""The cache that limits of logins are counted in. Where Redis is away each process counts for itself: people still get
in, and guessing passwords stays slow."""

import logging
from collections.abc import Callable
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT
from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)


class FallbackRedisCache(RedisCache):
    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._near = LocMemCache("while Redis is away", {})

    def add(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        return bool(self._or_near(super().add, self._near.add, key, value, timeout, version))

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        return self._or_near(super().get, self._near.get, key, default, version)

    def set(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        self._or_near(super().set, self._near.set, key, value, timeout, version)

    def delete(self, key: Any, version: int | None = None) -> bool:
        return bool(self._or_near(super().delete, self._near.delete, key, version))

    @staticmethod
    def _or_near(far: Callable[..., Any], near: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return far(*arguments)
        except RedisError as error:
            logger.warning("Redis is away, this process counts for itself: %s", error)
            return near(*arguments)
