"""Contested traces that are assigned to a person. Others can still decide them. Only this module writes
AdjudicationTask rows."""

import datetime as dt
from collections.abc import Collection

from django.db import transaction
from django.db.models import Case, IntegerField, QuerySet, Value, When

from accounts.models import User
from events import audit_log
from labeling import queue
from labeling.models import AdjudicationTask, Settlement, Trace
from labeling.quality.adjudication import list_contested


def assign_adjudication(
    *, project_id: int, trace_ids: Collection[int], reviewer: User | None, by: User | None, now: dt.datetime
) -> int:
    """Assign traces to a person, whether they are contested now or later, or to no one. Return how many."""
    with transaction.atomic():
        traces = list(Trace.objects.filter(project=project_id, pk__in=trace_ids).order_by("pk"))
        if reviewer is None:
            AdjudicationTask.objects.filter(trace__in=traces).delete()
        else:
            rows = [AdjudicationTask(trace=trace, reviewer=reviewer, assigned_at=now) for trace in traces]
            AdjudicationTask.objects.bulk_create(
                rows, update_conflicts=True, unique_fields=["trace"], update_fields=["reviewer", "assigned_at"]
            )
        detail = {"reviewer": reviewer.pk if reviewer else None}
        audit_log.log_events(
            [
                audit_log.EventEntry("trace.adjudication_assigned", project_id, f"trace:{row.pk}", detail)
                for row in traces
            ],
            by=by,
            now=now,
        )
    return len(traces)


def list_contested_for(*, project_id: int, user: User, reads_both_halves: bool = True) -> QuerySet[Settlement]:
    """Return contested traces: those of this person first, then those of no one, then those of others. Of a pair, they
    are of one half unless the person may read both."""
    order = Case(
        When(trace__adjudication_task__reviewer=user, then=Value(0)),
        When(trace__adjudication_task=None, then=Value(1)),
        default=Value(2),
        output_field=IntegerField(),
    )
    rows = list_contested(project_id=project_id).select_related(
        "trace__problem", "trace__pairing", "trace__adjudication_task__reviewer"
    )
    if not reads_both_halves:
        rows = rows.exclude(queue.is_other_half(user))
    return rows.order_by(order, "changed_at", "trace_id")
