"""Looks after what was submitted: every few seconds settles the traces that are due, a few a transaction, and has the
figures of their projects computed anew. Background work: it steps aside for people at work."""

import datetime as dt
import time
from itertools import groupby

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
        watching.measure_bar(project=Project.objects.get(pk=project_id), now=now)
        figures.compute(project_id=project_id, now=now)


def settle_due(*, now: dt.datetime, limit: int = 1000) -> int:
    """Settle what is due in all projects. Says how many traces were looked at."""
    looked_at = 0
    for project_id, rows in groupby(settling.due(limit=limit), key=lambda row: row[0]):
        traces = [trace_id for _, trace_id in rows]
        for start in range(0, len(traces), settling.CHUNK):
            began = time.perf_counter()
            looked_at += _settle(project_id, traces[start : start + settling.CHUNK], now)
            yielding.pause(time.perf_counter() - began, now=now)
        figures.mark_stale(project_id=project_id, now=now)
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
        # It stays due, and whoever reads the log finds it in every round until it is mended.
        logger.exception("trace.not_settled", trace=traces[0], project=project_id)
        return 0
