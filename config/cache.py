"""The cache that counts login attempts.

Without Redis each process counts for itself: people can still log in, and guessing passwords stays slow.
"""

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
        self._local = LocMemCache("fallback", {})

    def add(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        return bool(self._with_fallback(super().add, self._local.add, key, value, timeout, version))

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        return self._with_fallback(super().get, self._local.get, key, default, version)

    def set(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        self._with_fallback(super().set, self._local.set, key, value, timeout, version)

    def delete(self, key: Any, version: int | None = None) -> bool:
        return bool(self._with_fallback(super().delete, self._local.delete, key, version))

    @staticmethod
    def _with_fallback(remote: Callable[..., Any], local: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return remote(*arguments)
        except RedisError as error:
            logger.warning("Redis does not answer; using the cache of this process: %s", error)
            return local(*arguments)
