"""Looks after what was submitted: every few seconds settles the traces that are due, a few a transaction.
Background work: it steps aside for people at work."""

import datetime as dt
import time
from itertools import groupby

from jobs import yielding
from labeling.quality import settling


def settle_due(*, now: dt.datetime, limit: int = 1000) -> int:
    """Settle what is due in all projects. Says how many traces were looked at."""
    looked_at = 0
    for project_id, rows in groupby(settling.due(limit=limit), key=lambda row: row[0]):
        traces = [trace_id for _, trace_id in rows]
        for start in range(0, len(traces), settling.CHUNK):
            began = time.perf_counter()
            looked_at += settling.settle(
                project_id=project_id, trace_ids=traces[start : start + settling.CHUNK], now=now
            )
            yielding.pause(time.perf_counter() - began, now=now)
    return looked_at
