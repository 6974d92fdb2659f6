"""The pay rate of a project on each day. A new rate applies from the day (UTC) on which it was set; the first rate
applies to all earlier work as well."""

import datetime as dt
from decimal import Decimal

from django.db.models import Case, DecimalField, ExpressionWrapper, F, Q, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Round

from labeling.models import Project

_EXACT = DecimalField(max_digits=24, decimal_places=8)
_MS_PER_HOUR = 3_600_000


def keep_past_rate(project: Project, now: dt.datetime) -> list[list[str]]:
    """Return the past rates after a change of the current one today. Two changes on one day keep the first."""
    today = now.astimezone(dt.UTC).date().isoformat()
    past: list[list[str]] = project.past_pay_rates
    if project.pay_per_hour is None or (past and past[-1][0] == today):
        return past
    return [*past, [today, str(project.pay_per_hour)]]


def day_pay(project: Project) -> Round:
    """Return the pay of a WorkDay row, rounded to the cent. Every amount on a page is a sum of these."""
    return Round(exact_pay(project, day="day", ms=F("paid_ms")), precision=2)


def exact_pay(project: Project, *, day: str, ms: Combinable) -> Combinable:
    """Return the pay of active time, unrounded. `day` is the lookup of the date that decides on the rate."""
    past = (
        When(Q(**{f"{day}__lt": dt.date.fromisoformat(until)}), then=Value(Decimal(rate), output_field=_EXACT))
        for until, rate in project.past_pay_rates
    )
    rate = Case(*past, default=Value(project.pay_per_hour, output_field=_EXACT), output_field=_EXACT)
    return ExpressionWrapper(rate * Cast(ms, _EXACT) / Value(_MS_PER_HOUR), output_field=_EXACT)
