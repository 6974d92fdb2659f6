"""The charts of the overview, each with its table: all of a project's time, or its last weeks."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from dashboard import money, statistics
from dashboard.charts import Chart, bars, progress, series, words
from dashboard.charts.progress import End
from dashboard.charts.twice import twice
from dashboard.tables import Column, Table
from labeling import queue
from labeling.agreement import proportions
from labeling.models import DailyFigures, Project
from labeling.models.queue import Arm
from labeling.queue.filling import Depth

PLACES = 12  # on the axis of a chart over time


@dataclass(frozen=True)
class Day:
    day: dt.date
    ended: int  # of the readings: settled, decided, or contested
    contested: int
    steps: int
    paid_ms: int

    @property
    def settled(self) -> int:
        return self.ended - self.contested


def of(
    project: Project,
    every: Sequence[Day],
    end: End | None,
    total: int,
    course: Sequence[DailyFigures],
    weeks: int | None,
) -> dict[str, Chart]:
    """`every` day from the first to today, of which the last `weeks` are drawn, or all."""
    days = every[-7 * weeks :] if weeks else every
    course = [each for each in course if each.day >= days[0].day]
    before = sum(day.settled for day in every[: len(every) - len(days)])
    charts = {
        "progress": _progress(days, before, end, total),
        "contested": _contested(days),
    }
    if waiting := _queue(project):
        charts["queue"] = waiting
    if project.pay_per_hour is not None:
        charts["cost"] = _cost(project, days)
    if course:
        charts |= {"alpha": _alpha(_sampled(course)), "mix": _mix(_sampled(course))}
    return charts


def _progress(days: Sequence[Day], before: int, end: End | None, total: int) -> Chart:
    done, sofar = [], before
    for day in days:
        sofar += day.settled
        done.append((day.day, sofar))
    told = _("%(n)s settled") % {"n": f"{sofar:,}"}
    draw = partial(
        progress.draw,
        [(days[0].day - dt.timedelta(days=1), before), *done],
        goal=max(total, sofar),
        end=end,
        name=_("Settled traces day by day, %(n)s of %(total)s now") % {"n": sofar, "total": total},
        dates=_date,
        words=(told, _("today")),
    )
    columns = (Column(_("Day"), reads=str), Column(_("Settled"), is_number=True))
    return twice(draw, Table("settled", _("settled traces by day"), columns, done), wide=progress.WIDTH)


def _alpha(course: Sequence[DailyFigures]) -> Chart:
    told = [each.content["steps"].get("alpha_nominal") or {} for each in course]
    places = [
        series.Place(_date(each.day), one.get("value"), one.get("low"), one.get("high"))
        for each, one in zip(course, told, strict=True)
    ]
    svg = series.dots(
        places, name=_("Alpha nominal as it stood day by day, with 95 percent intervals"), reads=words.share
    )
    columns = (
        Column(_("Day"), reads=str),
        *(Column(each, is_number=True, reads=words.share) for each in (_("alpha"), _("from"), _("to"))),
        *(Column(each, is_number=True) for each in (_("n"), _("problems"))),
        Column(_("what is missing, and why")),
    )
    figures = [statistics.figure("alpha_nominal", one) for one in told]
    rows = [(day.day, f.value, f.low, f.high, f.n, f.n_problems, f.why) for day, f in zip(course, figures, strict=True)]
    return Chart(svg, Table("alpha", _("alpha nominal by day"), columns, rows))


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
        Column(_("Steps rated"), is_number=True),
    )
    n = [(each.content["steps"].get("alpha_nominal") or {}).get("n") for each in course]
    rows = [(each.day, a, b, 1 - a - b, of) for each, a, b, of in zip(course, negative, neutral, n, strict=True)]
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


def _queue(project: Project) -> Chart | None:
    lanes = queue.depth(project_id=project.pk)
    found = [bars.Bar(str(Arm(lane.arm).label), lane.n_open, _lane_note(lane)) for lane in lanes if lane.n_open]
    if not found:
        return None
    found.sort(key=lambda bar: -bar.value)
    draw = partial(bars.across, found, name=_("Traces waiting, by arm"), reads=words.count)
    columns = (Column(_("Arm")), Column(_("Waiting"), is_number=True), Column(_("Generation")))
    rows = [(bar.label, int(bar.value), bar.note) for bar in found]
    return twice(draw, Table("queue", _("traces waiting by arm"), columns, rows))


def _lane_note(lane: Depth) -> str:
    more = _("or more") if lane.is_more else ""
    told = _("generation %(n)d") % {"n": lane.generation} if lane.generation else ""
    return ", ".join(each for each in (told, more) if each)


def _cost(project: Project, days: Sequence[Day]) -> Chart:
    rows: list[tuple[dt.date, float | None, int]] = []
    for week in _weeks(days):
        spent, steps = money.cost(project, sum(day.paid_ms for day in week)), sum(day.steps for day in week)
        rows.append((week[0].day, float(spent / Decimal(steps)) if spent is not None and steps else None, steps))
    drawn = [bars.Bar(_date(day), cost) for day, cost, _steps in rows if cost is not None]

    def reads(value: float) -> str:
        return money.told(project, value, 3)

    draw = partial(bars.columns, drawn, name=_("Cost of a settled step, week by week"), reads=reads)
    columns = (
        Column(_("Week of"), reads=str),
        Column(_("Cost of a step"), is_number=True, reads=reads),
        Column(_("Steps"), is_number=True),
    )
    return twice(draw, Table("cost", _("cost of a settled step by week"), columns, rows))


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
