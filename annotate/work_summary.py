"""Summaries of a user's work: today by hour, this month, and weekly gold checks. Read-only."""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import TruncWeek
from django.utils import timezone
from django.utils.translation import ngettext

from accounts.models import User
from charts import bars
from charts.svg import Svg
from labeling import raters
from labeling.models import GoldAnswer, Submission
from labeling.models.assignment import AssignmentPurpose
from labeling.models.gold import GoldUse, GoldVerdict

# Hidden gold is included: a count without it would reveal which trace was gold.
_PAID = (AssignmentPurpose.WORK, AssignmentPurpose.GOLD, AssignmentPurpose.SCREENING, AssignmentPurpose.TRAINING)
MIN_WEEKLY_CHECKS = 5  # a smaller count would reveal too much about each check
_MIN_HOURS = 8  # a chart with fewer hours would have very wide bars


class Earnings(NamedTuple):
    """Pay for active time, in one currency."""

    amount: Decimal
    currency: str


@dataclass(frozen=True)
class WorkSummary:
    begins: dt.datetime
    n_traces: int
    active: dt.timedelta
    earned: list[Earnings]


@dataclass(frozen=True)
class TodaySummary(WorkSummary):
    hour: int  # now
    steps_by_hour: Mapping[int, int]  # without gaps; empty before the first step

    @property
    def n_steps(self) -> int:
        return sum(self.steps_by_hour.values())

    @property
    def chart(self) -> Svg | None:
        if not self.steps_by_hour:
            return None
        texts = [
            ngettext("%(hour)d:00, %(n)d step.", "%(hour)d:00, %(n)d steps.", n) % {"hour": hour, "n": n}
            for hour, n in self.steps_by_hour.items()
            if n
        ]
        return bars.draw_hours(self.steps_by_hour, now=self.hour, name=" ".join(texts))


class WeeklyGoldChecks(NamedTuple):
    """Correct answers on hidden gold in one project and week. Single traces are never revealed."""

    project: str
    begins: dt.date
    right: int
    n: int


def summarize_today(user: User, now: dt.datetime) -> TodaySummary:
    """Summarize the first submissions since midnight in the user's time zone; corrections are not counted."""
    begins, n_steps = _midnight(now), Count("assignment__turns", filter=Q(assignment__turns__revision=1))
    submissions = _first_submissions(user, since=begins).annotate(n=n_steps).order_by()
    rows = list(submissions.values_list("submitted_at", "total_ms", "project__pay_per_hour", "project__currency", "n"))
    by_hour: Counter[int] = Counter()
    for at, *_, n in rows:
        by_hour[timezone.localtime(at).hour] += n
    hour = timezone.localtime(now).hour
    return TodaySummary(
        begins,
        n_traces=len(rows),
        active=_total_duration(ms for _, ms, *_ in rows),
        earned=_earnings_by_currency((rate, currency, ms) for _, ms, rate, currency, _ in rows),
        hour=hour,
        steps_by_hour=_fill_hours(by_hour, hour) if by_hour.total() else {},
    )


def summarize_month(user: User, now: dt.datetime) -> WorkSummary:
    return _summarize_since(user, _midnight(now).replace(day=1))


def summarize_day(user: User, now: dt.datetime) -> WorkSummary:
    """Like `summarize_today`, without the steps: the work page asks for it after each submission."""
    return _summarize_since(user, _midnight(now))


def _summarize_since(user: User, begins: dt.datetime) -> WorkSummary:
    rates = _first_submissions(user, since=begins).order_by().values_list("project__pay_per_hour", "project__currency")
    rows = list(rates.annotate(ms=Sum("total_ms"), n=Count("pk")))
    return WorkSummary(
        begins,
        n_traces=sum(n for *_, n in rows),
        active=_total_duration(ms for *_, ms, _ in rows),
        earned=_earnings_by_currency((rate, currency, ms) for rate, currency, ms, _ in rows),
    )


def summarize_weekly_gold(user: User, now: dt.datetime, back: int = 4) -> list[WeeklyGoldChecks]:
    """Summarize hidden gold of recent weeks, for projects that show it.

    The current week is left out: a count that grows by one would reveal which trace was gold. Submissions that a lead
    set aside still count, because a count that falls by one would reveal it too. Weeks end in UTC, because a browser
    that names other time zones could move their end from hour to hour."""
    today = now.astimezone(dt.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    this_week = today - dt.timedelta(days=today.weekday())
    answers = GoldAnswer.objects.filter(
        rater__in=raters.list_rater_ids(user_id=user.pk),
        use=GoldUse.HIDDEN,
        project__shows_weekly_gold=True,
        answered_at__gte=this_week - dt.timedelta(weeks=back),
        answered_at__lt=this_week,
    )
    rows = (
        answers.annotate(week=TruncWeek("answered_at", tzinfo=dt.UTC))
        .values_list("project__name", "week")
        .annotate(right=Count("pk", filter=Q(verdict=GoldVerdict.RIGHT)), n=Count("pk"))
        .order_by("-week", "project__name")
    )
    return [WeeklyGoldChecks(name, week.date(), right, n) for name, week, right, n in rows if n >= MIN_WEEKLY_CHECKS]


def _first_submissions(user: User, *, since: dt.datetime) -> QuerySet[Submission]:
    """Return first submissions. The assignment also stores the time, so that its index narrows the join."""
    own = {"assignment__rater__in": raters.list_rater_ids(user_id=user.pk), "assignment__purpose__in": _PAID}
    return Submission.objects.filter(submitted_at__gte=since, revision=1, assignment__submitted_at__gte=since, **own)


def _midnight(now: dt.datetime) -> dt.datetime:
    return timezone.localtime(now).replace(hour=0, minute=0, second=0, microsecond=0)


def _total_duration(each_ms: Iterable[int | None]) -> dt.timedelta:
    return dt.timedelta(milliseconds=sum(ms or 0 for ms in each_ms))


def _fill_hours(by_hour: Mapping[int, int], now: int) -> dict[int, int]:
    """Return the hours from the first one with work to the current one, extended to at least _MIN_HOURS."""
    first, last = min(by_hour), max(now, *by_hour)
    last = min(23, max(last, first + _MIN_HOURS - 1))
    return {hour: by_hour.get(hour, 0) for hour in range(min(first, last - _MIN_HOURS + 1), last + 1)}


def _earnings_by_currency(times: Iterable[tuple[Decimal | None, str, int | None]]) -> list[Earnings]:
    """Sum the pay per currency, rounded once, at the end."""
    by_currency: dict[str, Decimal] = defaultdict(Decimal)
    for rate, currency, ms in times:
        if rate is not None:
            by_currency[currency] += rate * (ms or 0) / (3600 * 1000)
    cent = Decimal("0.01")
    return [Earnings(amount.quantize(cent), currency) for currency, amount in sorted(by_currency.items())]
