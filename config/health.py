"""Report to containers and proxies whether this process is alive and ready, and to Prometheus how fast it responds to
raters, what is waiting, and how full the disk is.

No login is needed. Without its broker the platform still serves people, and jobs wait for the sweep. So the broker's
state is reported but does not make the process unready.
"""

import contextlib
import hmac
import itertools
import pkgutil
import shutil
from collections.abc import Iterator
from pathlib import Path

import redis
from django.apps import apps
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Count, Min
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

from config import request_times
from events import durability
from host import disk
from host.disk import DiskState
from jobs.models import Job, JobState
from labeling.models import Settlement

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
    state = {"database": _database_state(), "broker": _broker_state(), "disk": _disk_state()}
    is_ready = state["database"] == "ready" and state["disk"] != DiskState.UNWRITABLE
    return JsonResponse({"ready": is_ready, **state}, status=200 if is_ready else 503)


def _database_state() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW transaction_read_only")
            if cursor.fetchone() == ("on",):
                return "read-only"
        if durability.describe_danger():
            return "unsafe"
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


def _disk_state() -> str:
    return disk.check_disk(settings.DATA_DIR, least_free=settings.LEAST_FREE_BYTES).value


def _broker_state() -> str:
    try:
        with _connect_to_broker() as client:
            client.ping()
    except redis.RedisError:
        return "unavailable"
    return "ready"


def _connect_to_broker() -> "redis.Redis":
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1)


@login_not_required
@require_safe
def show_metrics(request: HttpRequest) -> HttpResponse:
    """Serve metrics of raters' requests, background work and the disk. Disabled unless a token is set."""
    given = request.headers.get("Authorization", "")
    wanted = f"Bearer {settings.METRICS_TOKEN}"
    if not settings.METRICS_TOKEN or not hmac.compare_digest(given.encode(), wanted.encode()):
        raise Http404
    registry = CollectorRegistry()
    counted = dict(Job.objects.values_list("state").annotate(n=Count("pk")).order_by())
    jobs = Gauge("stepmark_jobs", "Jobs by state", ["state"], registry=registry)
    for state in JobState:
        jobs.labels(state.value).set(counted.get(state.value, 0))
    oldest = Job.objects.filter(state=JobState.QUEUED).aggregate(oldest=Min("asked_at"))["oldest"]
    waits = Gauge("stepmark_oldest_queued_job_seconds", "How long the oldest queued job waits", registry=registry)
    waits.set((timezone.now() - oldest).total_seconds() if oldest else 0)
    due = Gauge("stepmark_unsettled_traces", "Submitted traces that wait for their consensus", registry=registry)
    due.set(Settlement.objects.filter(is_due=True).count())
    _add_messages(registry)
    _add_disk(registry)
    registry.register(RequestTimeCollector())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _add_messages(registry: CollectorRegistry) -> None:
    """Add the messages that no worker has taken; nothing while the broker is unavailable."""
    messages = Gauge("stepmark_messages", "Messages that wait for a worker, by queue", ["queue"], registry=registry)
    with contextlib.suppress(redis.RedisError), _connect_to_broker() as client:
        for name in settings.CELERY_TASK_QUEUES:
            n_waiting = client.llen(name)
            messages.labels(name).set(n_waiting)


def _add_disk(registry: CollectorRegistry) -> None:
    with contextlib.suppress(OSError):
        usage = shutil.disk_usage(settings.DATA_DIR)
        Gauge("stepmark_disk_free_bytes", "Free bytes of the data folder's disk", registry=registry).set(usage.free)
        Gauge("stepmark_disk_bytes", "Size of the data folder's disk", registry=registry).set(usage.total)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        size = Gauge("stepmark_database_bytes", "Size of the database", registry=registry)
        size.set(cursor.fetchone()[0])


class RequestTimeCollector(Collector):
    """The response times of raters' requests, from all web processes of this machine."""

    def collect(self) -> Iterator[HistogramMetricFamily]:
        times = HistogramMetricFamily(
            "stepmark_request_seconds", "Time from a received request to its response", labels=["request"]
        )
        bounds = [*map(str, request_times.BOUNDS), "+Inf"]
        for each in request_times.read_times():
            buckets = list(zip(bounds, itertools.accumulate(each.counts), strict=True))
            times.add_metric([each.request], buckets, each.seconds)
        yield times
