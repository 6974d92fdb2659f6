"""The overview of a project: how far, until when, at what cost, how good. Reads what was computed behind the scenes:
one row of figures, one a day, and bounded counts; the same cost at ten traces and at a million."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from dashboard import forecast, money, statistics
from dashboard.charts import Chart, bars, progress, series, words
from dashboard.charts.progress import End
from dashboard.tables import Column, Table
from labeling import quality, queue
from labeling.agreement import proportions
from labeling.models import DailyFigures, Project
from labeling.models.queue import Arm
from labeling.quality.figures import Shown
from labeling.queue.filling import Depth

PLACES = 12  # on the axis of a chart over time


@dataclass(frozen=True)
class Day:
    day: dt.date
    ended: int  # of the readings: settled, decided, or contested
    contested: int
    steps: int
    active_ms: int

    @property
    def settled(self) -> int:
        return self.ended - self.contested


@dataclass(frozen=True)
class Overview:
    shown: Shown
    settled: int
    total: int
    end: End | None
    pace: float
    alpha: statistics.Figure
    exact: statistics.Figure
    within_one: statistics.Figure
    cost: str
    cost_in_all: str
    steps: int
    contested: int
    charts: dict[str, Chart]


def of(project: Project, now: dt.datetime) -> Overview | None:
    """None where nothing was submitted yet."""
    shown = quality.figures_of(project_id=project.pk)
    if shown is None:
        return None
    content, today = shown.content, now.astimezone(dt.UTC).date()
    days = _days(content, today)
    settled, total = content["settled"]["traces"], content["settled"].get("of", 0)
    pace = [day.settled for day in days][-forecast.DAYS :]
    end = forecast.end(pace, remaining=total - settled, today=today)
    headline = content["headline"]
    spent = money.cost(project, sum(day.active_ms for day in days))
    steps = content["settled"]["steps"]
    return Overview(
        shown=shown,
        settled=settled,
        total=total,
        end=end,
        pace=sum(pace) / max(len(pace), 1),
        alpha=statistics.figure("alpha_nominal", headline["steps"].get("alpha_nominal")),
        exact=statistics.figure("exact", headline["first_error"].get("exact")),
        within_one=statistics.figure("within_one", headline["first_error"].get("within_one")),
        cost=money.told(project, spent / steps if spent is not None and steps else None, 3),
        cost_in_all=money.told(project, spent),
        steps=steps,
        contested=content["settlements"].get("contested", 0),
        charts=_charts(project, days, end, total, list(quality.course(project_id=project.pk))),
    )


def _days(content: dict[str, Any], today: dt.date) -> list[Day]:
    """Every day from the first to today: days of rest count in a pace."""
    settled = {each["day"]: each for each in content.get("settled_days", ())}
    worked = {each["day"]: each for each in content["days"]}
    known = sorted({*settled, *worked})
    if not known:
        return [Day(today, 0, 0, 0, 0)]
    first = min(dt.date.fromisoformat(known[0]), today)
    every = [first + dt.timedelta(days=n) for n in range((today - first).days + 1)]
    return [_day(each, settled.get(each.isoformat(), {}), worked.get(each.isoformat(), {})) for each in every]


def _day(day: dt.date, settled: dict[str, Any], worked: dict[str, Any]) -> Day:
    return Day(
        day,
        ended=settled.get("settled", 0),
        contested=settled.get("contested", 0),
        steps=settled.get("steps", 0),
        active_ms=worked.get("active_ms", 0),
    )


def _charts(
    project: Project, days: Sequence[Day], end: End | None, total: int, course: Sequence[DailyFigures]
) -> dict[str, Chart]:
    charts = {
        "progress": _progress(days, end, total),
        "contested": _contested(days),
        "queue": _queue(project),
    }
    if project.pay_per_hour is not None:
        charts["cost"] = _cost(project, days)
    if course:
        charts |= {"alpha": _alpha(_sampled(course)), "mix": _mix(_sampled(course))}
    return charts


def _progress(days: Sequence[Day], end: End | None, total: int) -> Chart:
    done, sofar = [], 0
    for day in days:
        sofar += day.settled
        done.append((day.day, sofar))
    told = _("%(n)s settled") % {"n": f"{sofar:,}"}
    svg = progress.draw(
        [(days[0].day - dt.timedelta(days=1), 0), *done],
        goal=max(total, sofar),
        end=end,
        name=_("Settled traces day by day, %(n)s of %(total)s now") % {"n": sofar, "total": total},
        dates=_date,
        words=(told, _("today")),
    )
    columns = (Column(_("Day"), reads=str), Column(_("Settled"), is_number=True))
    return Chart(svg, Table("settled", _("settled traces by day"), columns, done), is_wide=True)


def _alpha(course: Sequence[DailyFigures]) -> Chart:
    told = [each.content["steps"].get("alpha_nominal") or {} for each in course]
    places = [
        series.Place(_date(each.day), one.get("value"), one.get("low"), one.get("high"))
        for each, one in zip(course, told, strict=True)
    ]
    svg = series.dots(
        places, name=_("Alpha nominal as it stood day by day, with 95 percent intervals"), reads=words.share
    )
    rows = [(each.day, place.value, place.low, place.high) for each, place in zip(course, places, strict=True)]
    return Chart(svg, Table("alpha", _("alpha nominal by day"), _with_interval(_("alpha")), rows))


def _with_interval(name: str) -> tuple[Column, ...]:
    shares = (Column(each, is_number=True, reads=words.share) for each in (name, _("from"), _("to")))
    return (Column(_("Day"), reads=str), *shares)


def _mix(course: Sequence[DailyFigures]) -> Chart:
    shares = [each.content.get("labels") or {} for each in course]
    negative, neutral = ([one.get(value, 0.0) for one in shares] for value in ("-1", "0"))
    layers = [
        bars.Layer("fn-l", _("negative"), negative, words.percent(negative[-1])),
        bars.Layer("fo-l", _("neutral"), neutral, words.percent(neutral[-1])),
    ]
    positive = 1 - negative[-1] - neutral[-1]
    svg = bars.stacked(
        [_date(each.day) for each in course],
        layers,
        name=_("Share of negative and neutral ratings day by day"),
        reads=words.percent,
        rest=(_("positive"), _("%(share)s, the rest") % {"share": words.percent(positive)}),
    )
    columns = (
        Column(_("Day"), reads=str),
        *(Column(name, is_number=True, reads=words.percent) for name in (_("Negative"), _("Neutral"), _("Positive"))),
    )
    rows = [(each.day, a, b, 1 - a - b) for each, a, b in zip(course, negative, neutral, strict=True)]
    return Chart(svg, Table("labels", _("label mix by day"), columns, rows))


def _contested(days: Sequence[Day]) -> Chart:
    """By week: of the traces that came to an end of their readings."""
    places, rows = [], []
    for week in _weeks(days):
        n, contested = sum(day.ended for day in week), sum(day.contested for day in week)
        around = proportions.wilson(right=contested, n=n) if n else None
        low, high = (around.low, around.high) if around else (None, None)
        places.append(series.Place(_date(week[0].day), contested / n if n else None, low, high))
        rows.append((week[0].day, places[-1].value, low, high, n))
    svg = series.band(places, name=_("Contested share week by week, with 95 percent band"), reads=words.percent)
    columns = (
        Column(_("Week of"), reads=str),
        *(Column(name, is_number=True, reads=words.percent) for name in (_("Contested"), _("from"), _("to"))),
        Column(_("Traces"), is_number=True),
    )
    return Chart(svg, Table("contested", _("contested share by week"), columns, rows))


def _queue(project: Project) -> Chart:
    lanes = queue.depth(project_id=project.pk)
    found = [bars.Bar(str(Arm(lane.arm).label), lane.n_open, _lane_note(lane)) for lane in lanes if lane.n_open]
    found.sort(key=lambda bar: -bar.value)
    svg = bars.across(found, name=_("Traces waiting, by arm"), reads=words.count)
    columns = (Column(_("Arm")), Column(_("Waiting"), is_number=True), Column(_("Generation")))
    rows = [(bar.label, int(bar.value), bar.note) for bar in found]
    return Chart(svg, Table("queue", _("traces waiting by arm"), columns, rows), is_wide=True)


def _lane_note(lane: Depth) -> str:
    more = _("or more") if lane.is_more else ""
    told = _("generation %(n)d") % {"n": lane.generation} if lane.generation else ""
    return ", ".join(each for each in (told, more) if each)


def _cost(project: Project, days: Sequence[Day]) -> Chart:
    rows: list[tuple[dt.date, float | None, int]] = []
    for week in _weeks(days):
        spent, steps = money.cost(project, sum(day.active_ms for day in week)), sum(day.steps for day in week)
        rows.append((week[0].day, float(spent / Decimal(steps)) if spent is not None and steps else None, steps))
    drawn = [bars.Bar(_date(day), cost) for day, cost, _steps in rows if cost is not None]

    def reads(value: float) -> str:
        return money.told(project, value, 3)

    svg = bars.columns(drawn, name=_("Cost of a settled step, week by week"), reads=reads)
    columns = (
        Column(_("Week of"), reads=str),
        Column(_("Cost of a step"), is_number=True, reads=reads),
        Column(_("Steps"), is_number=True),
    )
    return Chart(svg, Table("cost", _("cost of a settled step by week"), columns, rows), is_wide=True)


def _weeks(days: Sequence[Day]) -> list[Sequence[Day]]:
    """Sevens of days, the last one ending today."""
    first = len(days) % 7
    cut = [days[:first]] if first else []
    return [*cut, *(days[n : n + 7] for n in range(first, len(days), 7))][-PLACES:]


def _sampled(course: Sequence[DailyFigures]) -> Sequence[DailyFigures]:
    """At most twelve, evenly, with the last one."""
    every = max(1, -(-len(course) // PLACES))
    return list(reversed(list(reversed(course))[::every]))


def _date(day: dt.date) -> str:
    return date_format(day, "j M")
