"""Count the traces of a project without scanning all of them.

Stores the count up to some trace id, and counts only newer traces. Ids are assigned before their transactions commit,
so a lower id can appear after a higher one. Traces older than an hour are complete: no transaction takes that long.
"""

import datetime as dt

from django.db.models import Max, QuerySet

from labeling.models import ProjectStats, Trace

COMPLETE_AFTER = dt.timedelta(hours=1)


def count_traces(*, project_id: int) -> int:
    """Return the number of traces that are not withdrawn."""
    row = ProjectStats.objects.filter(pk=project_id).values_list("n_traces", "last_trace").first()
    n, last = row or (0, 0)
    withdrawn = Trace.objects.filter(project=project_id, withdrawn_at__isnull=False).count()
    return n + _traces_after(project_id, last).count() - withdrawn


def advance_trace_count(*, project_id: int, now: dt.datetime) -> None:
    """Add the traces that have become complete to the stored count."""
    n, last = ProjectStats.objects.values_list("n_traces", "last_trace").get(pk=project_id)
    new = _traces_after(project_id, last)
    young = new.filter(added_at__gte=now - COMPLETE_AFTER).order_by("pk").values_list("pk", flat=True).first()
    complete = new if young is None else new.filter(pk__lt=young)
    to = complete.aggregate(to=Max("pk"))["to"]
    if to is not None:
        n += complete.filter(pk__lte=to).count()
        ProjectStats.objects.filter(pk=project_id).update(n_traces=n, last_trace=to)


def recount_traces(*, project_id: int) -> int:
    """Correct the stored count. Return 1 if it was wrong, otherwise 0."""
    last = ProjectStats.objects.values_list("last_trace", flat=True).get(pk=project_id)
    n = Trace.objects.filter(project=project_id, pk__lte=last).count()
    return ProjectStats.objects.filter(pk=project_id, last_trace=last).exclude(n_traces=n).update(n_traces=n)


def reset_trace_count(*, project_id: int) -> None:
    """Count all traces again after some were deleted."""
    ProjectStats.objects.filter(pk=project_id).update(n_traces=0, last_trace=0)


def _traces_after(project_id: int, last: int) -> QuerySet[Trace]:
    return Trace.objects.filter(project=project_id, pk__gt=last)
