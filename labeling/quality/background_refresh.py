"""Background work after submits: resolve due traces, and recompute stale project statistics.

Runs every few seconds. Statistics are computed in one task per project, so that a large project does not delay others.
"""

import datetime as dt

import structlog
from django.db import DatabaseError

from labeling.models import Project
from labeling.quality import gold_monitor, project_stats, resolve

logger = structlog.get_logger(__name__)


def list_stale_projects(*, now: dt.datetime) -> list[int]:
    return project_stats.find_stale_projects(now=now)


def refresh_project_stats(*, project_id: int, now: dt.datetime) -> None:
    """Compute the statistics of one project, unless another worker does it already."""
    if not project_stats.claim_computation(project_id=project_id, now=now):
        return
    try:
        gold_monitor.set_gold_threshold(project=Project.objects.get(pk=project_id), now=now)
        project_stats.compute_project_stats(project_id=project_id, now=now)
    except DatabaseError:
        project_stats.release_computation(project_id=project_id, now=now)
        raise
    except Exception:
        # The claim is kept, so the next attempt waits until the claim expires.
        logger.exception("figures.not_computed", project=project_id)


def resolve_due_traces(*, now: dt.datetime, limit: int = 1000) -> int:
    """Resolve due traces of all projects. Return how many."""
    n_resolved = 0
    for project_id, traces in resolve.find_due_traces(now=now, limit=limit):
        n_resolved += _resolve_or_retry(project_id, traces, now)
        project_stats.mark_stats_stale(project_id=project_id, now=now)
    return n_resolved


def _resolve_or_retry(project_id: int, traces: list[int], now: dt.datetime) -> int:
    """Resolve traces together or, if that fails, one by one, so that one failing trace does not block the others."""
    try:
        return resolve.resolve_traces(project_id=project_id, trace_ids=traces, now=now)
    except DatabaseError:
        raise  # not caused by a trace; the next round retries
    except Exception:
        if len(traces) > 1:
            return sum(_resolve_or_retry(project_id, [trace_id], now) for trace_id in traces)
        # The trace stays due, and each failed attempt is logged.
        logger.exception("trace.not_settled", trace=traces[0], project=project_id)
        resolve.schedule_retry(trace_id=traces[0], now=now)
        return 0
