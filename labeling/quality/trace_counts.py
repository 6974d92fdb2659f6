"""Counts the traces of a project without going through all of them: those that came long ago are counted once. Alone
writes how far they are.

Numbers of traces are given out before their transactions end, so that a lower one may appear after a higher one. No
transaction takes an hour: what is older than that is complete up to the first trace that is younger.
"""

import datetime as dt

from django.db.models import Max, QuerySet

from labeling.models import ProjectStats, Trace

COMPLETE_AFTER = dt.timedelta(hours=1)


def count_traces(*, project_id: int) -> int:
    """How many traces may be read: those that were withdrawn are not."""
    row = ProjectStats.objects.filter(pk=project_id).values_list("n_traces", "last_trace").first()
    n, last = row or (0, 0)
    withdrawn = Trace.objects.filter(project=project_id, withdrawn_at__isnull=False).count()
    return n + _traces_after(project_id, last).count() - withdrawn


def advance_trace_count(*, project_id: int, now: dt.datetime) -> None:
    """Count what has become complete since."""
    n, last = ProjectStats.objects.values_list("n_traces", "last_trace").get(pk=project_id)
    new = _traces_after(project_id, last)
    young = new.filter(added_at__gte=now - COMPLETE_AFTER).order_by("pk").values_list("pk", flat=True).first()
    complete = new if young is None else new.filter(pk__lt=young)
    to = complete.aggregate(to=Max("pk"))["to"]
    if to is not None:
        n += complete.filter(pk__lte=to).count()
        ProjectStats.objects.filter(pk=project_id).update(n_traces=n, last_trace=to)


def recount_traces(*, project_id: int) -> int:
    """Put right what differs from the traces themselves. Says whether it did, as 0 or 1."""
    last = ProjectStats.objects.values_list("last_trace", flat=True).get(pk=project_id)
    there = Trace.objects.filter(project=project_id, pk__lte=last).count()
    return ProjectStats.objects.filter(pk=project_id, last_trace=last).exclude(n_traces=there).update(n_traces=there)


def reset_trace_count(*, project_id: int) -> None:
    """Traces were removed: all are counted once more."""
    ProjectStats.objects.filter(pk=project_id).update(n_traces=0, last_trace=0)


def _traces_after(project_id: int, last: int) -> QuerySet[Trace]:
    return Trace.objects.filter(project=project_id, pk__gt=last)
