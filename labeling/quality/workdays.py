"""Work of each rater per UTC day. The only module that writes work days.

Past days change only by corrections. So after a submit only the last counted day and later ones are recounted; the
nightly job recounts every day.
"""

import datetime as dt
from typing import Any

from django.db import transaction
from django.db.models import Count, F, Max, Q, Sum
from django.db.models.functions import TruncDate

from labeling.models import Submission, WorkDay
from labeling.models.assignment import AssignmentOrigin, AssignmentPurpose, AssignmentState
from labeling.models.rater import RaterKind

_Counted = dict[tuple[dt.date, int], tuple[int, int, int]]


def update_workdays(*, project_id: int, now: dt.datetime, from_first: bool = False) -> int:
    """Update the work days. Return how many past rows changed."""
    last = WorkDay.objects.filter(project_id=project_id).aggregate(day=Max("day"))["day"]
    since = None if from_first else last
    expected = _sum_submissions(project_id, since)
    with transaction.atomic():
        stored = _load_workdays(project_id, since)
        differing = sorted(key for key in expected.keys() | stored.keys() if expected.get(key) != stored.get(key))
        _save_workdays(project_id, {key: expected.get(key) for key in differing})
    return sum(last is not None and day < last for day, _ in differing)


def sum_time_by_rater(project_id: int) -> dict[int, tuple[int, int]]:
    """Return the active time on work and the paid time of each rater, in milliseconds."""
    rows = WorkDay.objects.filter(project_id=project_id).values_list("rater_id")
    return {rater: (active, paid) for rater, active, paid in rows.annotate(Sum("active_ms"), Sum("paid_ms")).order_by()}


def mean_label_time(project_id: int) -> int | None:
    """Return the mean active milliseconds of a label of work, or None before the first one."""
    sums = WorkDay.objects.filter(project_id=project_id).aggregate(n=Sum("readings"), ms=Sum("active_ms"))
    return round(sums["ms"] / sums["n"]) if sums["n"] else None


def sum_time_by_day(project_id: int) -> list[dict[str, Any]]:
    """Return one row for each day with any work."""
    sums = {"n": Sum("readings"), "active": Sum("active_ms"), "paid": Sum("paid_ms")}
    rows = WorkDay.objects.filter(project_id=project_id).values_list("day").annotate(**sums).order_by("day")
    return [
        {"day": day.isoformat(), "readings": n, "active_ms": active, "paid_ms": paid} for day, n, active, paid in rows
    ]


def sum_time_set_aside(project_id: int) -> dict[int, int]:
    """Return the active milliseconds of each rater's work that was set aside. It stays in their work days and pay."""
    rows = Submission.objects.filter(
        assignment__project=project_id, assignment__set_aside__isnull=False, assignment__purpose=AssignmentPurpose.WORK
    )
    return dict(rows.order_by().values_list("assignment__rater_id").annotate(Sum("total_ms")))


def load_work_since(
    project_id: int, day: dt.date, *, rater_id: int | None = None
) -> dict[int, dict[dt.date, tuple[int, int]]]:
    """Return (submissions, active time) by rater and day, from `day` on, for all raters or one."""
    rows = WorkDay.objects.filter(project_id=project_id, day__gte=day)
    rows = rows if rater_id is None else rows.filter(rater_id=rater_id)
    work: dict[int, dict[dt.date, tuple[int, int]]] = {}
    for rater, date, readings, active_ms in rows.values_list("rater_id", "day", "readings", "active_ms"):
        work.setdefault(rater, {})[date] = (readings, active_ms)
    return work


def _sum_submissions(project_id: int, since: dt.date | None) -> _Counted:
    """Sum submissions of members by rater and day of the first revision."""
    rows = Submission.objects.filter(
        project_id=project_id,
        assignment__project_id=project_id,
        assignment__state=AssignmentState.SUBMITTED,
        assignment__origin=AssignmentOrigin.HERE,
        assignment__rater__kind=RaterKind.MEMBER,
    )
    if since is not None:
        rows = rows.filter(assignment__submitted_at__gte=dt.datetime.combine(since, dt.time.min, dt.UTC))
    is_work = Q(assignment__purpose=AssignmentPurpose.WORK)
    by_day = rows.annotate(day=TruncDate("assignment__submitted_at", tzinfo=dt.UTC), who=F("assignment__rater_id"))
    sums = (
        by_day.order_by()
        .values_list("day", "who")
        .annotate(
            n=Count("pk", filter=is_work & Q(revision=1)),
            active=Sum("total_ms", filter=is_work),
            paid=Sum("total_ms"),
        )
    )
    return {(day, rater): (n, active or 0, paid or 0) for day, rater, n, active, paid in sums}


def _load_workdays(project_id: int, since: dt.date | None) -> _Counted:
    rows = WorkDay.objects.filter(project_id=project_id)
    rows = rows if since is None else rows.filter(day__gte=since)
    columns = ("day", "rater_id", "readings", "active_ms", "paid_ms")
    return {(day, rater): (n, active, paid) for day, rater, n, active, paid in rows.values_list(*columns)}


def _save_workdays(project_id: int, counted: dict[tuple[dt.date, int], tuple[int, int, int] | None]) -> None:
    deleted = Q(pk=None)
    rows = []
    for (day, rater), sums in counted.items():
        if sums is None:
            deleted |= Q(day=day, rater_id=rater)
        else:
            n, active, paid = sums
            rows.append(
                WorkDay(project_id=project_id, day=day, rater_id=rater, readings=n, active_ms=active, paid_ms=paid)
            )
    WorkDay.objects.filter(deleted, project_id=project_id).delete()
    WorkDay.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["project", "day", "rater"],
        update_fields=["readings", "active_ms", "paid_ms"],
        batch_size=500,
    )
