"""Serve Prometheus metrics of background jobs. Disabled unless a token is set."""

import datetime as dt
import hmac
from collections.abc import Iterator

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db.models import Count, Min
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from jobs.models import Job, JobState


@login_not_required
@require_safe
def show_metrics(request: HttpRequest) -> HttpResponse:
    given = request.headers.get("Authorization", "")
    wanted = f"Bearer {settings.METRICS_TOKEN}"
    if not settings.METRICS_TOKEN or not hmac.compare_digest(given.encode(), wanted.encode()):
        raise Http404
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_JobCollector(timezone.now()))
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class _JobCollector(Collector):
    def __init__(self, now: dt.datetime) -> None:
        self.now = now

    def collect(self) -> Iterator[Metric]:
        counted = {state.value: 0 for state in JobState}
        counted |= dict(Job.objects.values_list("state").annotate(n=Count("pk")).order_by())
        jobs = GaugeMetricFamily("stepmark_jobs", "Jobs by state", labels=["state"])
        for state, n in sorted(counted.items()):
            jobs.add_metric([state], n)
        yield jobs
        oldest = Job.objects.filter(state=JobState.QUEUED).aggregate(oldest=Min("asked_at"))["oldest"]
        waits = (self.now - oldest).total_seconds() if oldest else 0
        yield GaugeMetricFamily("stepmark_oldest_queued_job_seconds", "How long the oldest queued job waits", waits)
