"""Whether this process lives, and whether it can serve people. Asked by containers and proxies, without a login.

Without its broker the platform still serves people and loses nothing: jobs wait for the sweep. So that is said, and is
no reason to take the web server away from them.
"""

import pkgutil
from collections.abc import Iterator
from pathlib import Path

import redis
from django.apps import apps
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

_migrated = False


@login_not_required
@require_safe
@never_cache
def live(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"live": True})


@login_not_required
@require_safe
@never_cache
def ready(request: HttpRequest) -> HttpResponse:
    state = {"database": _database_state(), "broker": _broker_state()}
    is_ready = state["database"] == "ready"
    return JsonResponse({"ready": is_ready, **state}, status=200 if is_ready else 503)


def _database_state() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return "ready" if _is_migrated() else "not migrated"
    except DatabaseError:
        return "away"


def _is_migrated() -> bool:
    """Looked up until it is so: a running process cannot fall behind its own code again."""
    global _migrated
    if not _migrated:
        _migrated = set(_migrations_on_disk()) <= set(MigrationRecorder(connection).applied_migrations())
    return _migrated


def _migrations_on_disk() -> Iterator[tuple[str, str]]:
    """By the names of their files: to import them all would make this process a fifth larger, for one answer."""
    for app in apps.get_app_configs():
        for module in pkgutil.iter_modules([str(Path(app.path) / "migrations")]):
            if not module.name.startswith("_"):
                yield app.label, module.name


def _broker_state() -> str:
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1) as client:
            client.ping()
    except redis.RedisError:
        return "away"
    return "ready"
