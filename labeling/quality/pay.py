"""Pay by person and period, summed from work days. Each day of a person is rounded to the cent, so all sums agree.

Everyone who worked here is included: removed members, erased people, and submissions that were set aside. Imported
labels and machines are not paid.
"""

import datetime as dt
from decimal import Decimal
from typing import NamedTuple

from django.db.models import Count, F, QuerySet, Sum
from django.db.models.functions import TruncMonth, TruncWeek

from labeling.models import Project, WorkDay
from labeling.projects import pay_rates

PERIODS = {"day": F("day"), "week": TruncWeek("day"), "month": TruncMonth("day")}


class PayRow(NamedTuple):
    """The pay of one rater for one period. `begins` is None for the whole time."""

    rater_id: int
    begins: dt.date | None
    days: int
    traces: int  # of work, first submissions
    paid_ms: int
    pay: Decimal


def list_pay(
    *, project: Project, since: dt.date | None = None, until: dt.date | None = None, period: str = ""
) -> list[PayRow]:
    """Sum the work days from `since` to `until`, both included, by rater and period."""
    rows = _work_days(project)
    rows = rows if since is None else rows.filter(day__gte=since)
    rows = rows if until is None else rows.filter(day__lte=until)
    keys = ["rater_id"]
    if period:
        rows, keys = rows.annotate(begins=PERIODS[period]), ["rater_id", "begins"]
    sums = rows.values(*keys).annotate(
        n_days=Count("pk"), n=Sum("readings"), ms=Sum("paid_ms"), total=Sum(pay_rates.day_pay(project))
    )
    return [
        PayRow(row["rater_id"], row.get("begins"), row["n_days"], row["n"], row["ms"], row["total"] or Decimal(0))
        for row in sums.order_by(*keys)
    ]


def sum_by_day(project: Project) -> dict[dt.date, Decimal]:
    rows = _work_days(project).values_list("day").annotate(total=Sum(pay_rates.day_pay(project)))
    return {day: total or Decimal(0) for day, total in rows.order_by("day")}


def sum_by_rater(project: Project) -> dict[int, Decimal]:
    return {row.rater_id: row.pay for row in list_pay(project=project)}


def _work_days(project: Project) -> QuerySet[WorkDay]:
    return WorkDay.objects.filter(project=project)
