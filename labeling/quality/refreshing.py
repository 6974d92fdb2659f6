"""Looks after what was submitted: every few seconds settles the traces that are due, a few a transaction, and has the
figures of their projects computed anew. Background work: it steps aside for people at work."""

import datetime as dt
import time

import structlog
from django.db import DatabaseError

from jobs import yielding
from labeling.models import Project
from labeling.quality import figures, settling, watching

logger = structlog.get_logger(__name__)


def refresh(*, now: dt.datetime) -> None:
    """One round: settle, then compute the figures that have become stale and have rested."""
    settle_due(now=now)
    for project_id in figures.stale(now=now):
        _compute(project_id, now)


def _compute(project_id: int, now: dt.datetime) -> None:
    """One project whose figures cannot be computed keeps no other waiting."""
    try:
        watching.measure_bar(project=Project.objects.get(pk=project_id), now=now)
        figures.compute(project_id=project_id, now=now)
    except DatabaseError:
        raise
    except Exception:
        figures.mark_stale(project_id=project_id, now=now)
        logger.exception("figures.not_computed", project=project_id)


def settle_due(*, now: dt.datetime, limit: int = 1000) -> int:
    """Settle what is due in all projects, in turn. Says how many traces were looked at."""
    looked_at = 0
    for project_id, traces in settling.due(now=now, limit=limit):
        began = time.perf_counter()
        looked_at += _settle(project_id, traces, now)
        figures.mark_stale(project_id=project_id, now=now)
        yielding.pause(time.perf_counter() - began, now=now)
    return looked_at


def _settle(project_id: int, traces: list[int], now: dt.datetime) -> int:
    """Some traces together; where that fails each by itself, so that one does not keep the others waiting for ever."""
    try:
        return settling.settle(project_id=project_id, trace_ids=traces, now=now)
    except DatabaseError:
        raise  # not the fault of a trace: the next round tries again
    except Exception:
        if len(traces) > 1:
            return sum(_settle(project_id, [trace_id], now) for trace_id in traces)
        # It stays due, and whoever reads the log finds it at every try until it is mended.
        logger.exception("trace.not_settled", trace=traces[0], project=project_id)
        settling.put_off(trace_id=traces[0], now=now)
        return 0
