"""Looks after what was submitted: every few seconds settles the traces that are due, a few a transaction, and has the
figures of their projects computed anew, each by itself: nobody's settling waits for the figures of a large project.
"""

import datetime as dt

import structlog
from django.db import DatabaseError

from labeling.models import Project
from labeling.quality import gold_monitor, project_stats, resolve

logger = structlog.get_logger(__name__)


def list_stale_projects(*, now: dt.datetime) -> list[int]:
    """Projects whose figures somebody is to `compute`."""
    return project_stats.find_stale_projects(now=now)


def refresh_project_stats(*, project_id: int, now: dt.datetime) -> None:
    """The figures of one project, unless somebody else does it. Where it cannot be done they stay as they are for some
    minutes."""
    if not project_stats.claim_computation(project_id=project_id, now=now):
        return
    try:
        gold_monitor.set_gold_threshold(project=Project.objects.get(pk=project_id), now=now)
        project_stats.compute_project_stats(project_id=project_id, now=now)
    except DatabaseError:
        project_stats.release_computation(project_id=project_id, now=now)
        raise
    except Exception:
        # They stay begun, so that nobody tries again before a lost worker would be followed.
        logger.exception("figures.not_computed", project=project_id)


def resolve_due_traces(*, now: dt.datetime, limit: int = 1000) -> int:
    """Settle what is due in all projects, in turn. Says how many traces were looked at."""
    looked_at = 0
    for project_id, traces in resolve.find_due_traces(now=now, limit=limit):
        looked_at += _resolve_or_retry(project_id, traces, now)
        project_stats.mark_stats_stale(project_id=project_id, now=now)
    return looked_at


def _resolve_or_retry(project_id: int, traces: list[int], now: dt.datetime) -> int:
    """Some traces together; where that fails each by itself, so that one does not keep the others waiting for ever."""
    try:
        return resolve.resolve_traces(project_id=project_id, trace_ids=traces, now=now)
    except DatabaseError:
        raise  # not the fault of a trace: the next round tries again
    except Exception:
        if len(traces) > 1:
            return sum(_resolve_or_retry(project_id, [trace_id], now) for trace_id in traces)
        # It stays due, and whoever reads the log finds it at every try until it is mended.
        logger.exception("trace.not_settled", trace=traces[0], project=project_id)
        resolve.schedule_retry(trace_id=traces[0], now=now)
        return 0
