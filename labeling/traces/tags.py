"""Words that people put on traces, to find and export them again. Only this module writes TraceTag rows."""

import datetime as dt
from collections.abc import Collection

from django.db import transaction

from accounts.models import User
from events import audit_log
from labeling.models import Trace, TraceTag

MAX_TAG_LENGTH = 40
MAX_TAGS = 200  # listed as a filter


def add_tag(*, project_id: int, trace_ids: Collection[int], name: str, by: User | None, now: dt.datetime) -> int:
    """Tag the traces, and return how many did not have the tag."""
    with transaction.atomic():
        known = set(TraceTag.objects.filter(trace__in=trace_ids, name=name).values_list("trace_id", flat=True))
        new = Trace.objects.filter(project=project_id, pk__in=trace_ids).exclude(pk__in=known).order_by("pk")
        rows = [TraceTag(project_id=project_id, trace=trace, name=name, made_at=now) for trace in new]
        TraceTag.objects.bulk_create(rows, ignore_conflicts=True)
        _log("trace.tagged", project_id, name, len(rows), by, now)
    return len(rows)


def remove_tag(*, project_id: int, trace_ids: Collection[int], name: str, by: User | None, now: dt.datetime) -> int:
    """Remove the tag from the traces, and return how many had it."""
    with transaction.atomic():
        n, _by_model = TraceTag.objects.filter(project=project_id, trace__in=trace_ids, name=name).delete()
        _log("trace.untagged", project_id, name, n, by, now)
    return n


def list_tags(*, project_id: int) -> list[str]:
    names = TraceTag.objects.filter(project=project_id).values_list("name", flat=True)
    return list(names.order_by("name").distinct()[:MAX_TAGS])


def _log(what: str, project_id: int, name: str, n: int, by: User | None, now: dt.datetime) -> None:
    detail = {"tag": name, "traces": n}
    audit_log.log_event(what=what, by=by, now=now, project=project_id, subject=f"project:{project_id}", detail=detail)
