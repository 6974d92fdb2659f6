"""Withdraw traces from a project."""

import datetime as dt
from collections.abc import Sequence

from accounts.models import User
from labeling import queue
from labeling.models import Project
from labeling.quality import project_stats


def withdraw_traces(
    *, project: Project, trace_ids: Sequence[int], reason: str, by: User | None, now: dt.datetime
) -> None:
    """Stop assigning these traces and exclude them from statistics. Open assignments can still be finished."""
    queue.withdraw_traces(trace_ids=trace_ids, now=now, reason=reason, by=by)
    project_stats.mark_existing_stats_stale(project_id=project.pk, now=now)
