"""Report to containers and proxies whether this process is alive and ready. No login is needed.

Without its broker the platform still serves people, and jobs wait for the sweep. So the broker's state is reported but
does not make the process unready.
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
        return "unavailable"


def _is_migrated() -> bool:
    """Return whether all migrations are applied. Once true, it stays true for the life of the process."""
    global _migrated
    if not _migrated:
        _migrated = set(_migrations_on_disk()) <= set(MigrationRecorder(connection).applied_migrations())
    return _migrated


def _migrations_on_disk() -> Iterator[tuple[str, str]]:
    """List migrations by file name; importing them would make this process a fifth larger."""
    for app in apps.get_app_configs():
        for module in pkgutil.iter_modules([str(Path(app.path) / "migrations")]):
            if not module.name.startswith("_"):
                yield app.label, module.name


def _broker_state() -> str:
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1) as client:
            client.ping()
    except redis.RedisError:
        return "unavailable"
    return "ready"
