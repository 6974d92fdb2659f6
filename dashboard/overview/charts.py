"""The charts of the overview, each with its table: all of a project's time, or its last weeks."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from charts import bars, number_format, progress, series
from charts.progress import CompletionForecast
from dashboard import money, statistics
from dashboard.chart import Chart, draw_for_both_widths
from dashboard.tables import DataTable, TableColumn
from labeling import queue
from labeling.models import DailyProjectStats, Project
from labeling.models.queue import SamplingSource
from labeling.queue.lane_entries import LaneDepth
from stats import intervals

MAX_POINTS = 12  # on the axis of a chart over time


@dataclass(frozen=True)
class OverviewDay:
    day: dt.date
    ended: int  # of the readings: settled, decided, or contested
    contested: int
    steps: int
    paid_ms: int

    @property
    def settled(self) -> int:
        return self.ended - self.contested


def build_overview_charts(
    project: Project,
    every: Sequence[OverviewDay],
    end: CompletionForecast | None,
    total: int,
    course: Sequence[DailyProjectStats],
    weeks: int | None,
) -> dict[str, Chart]:
    """`every` day from the first to today, of which the last `weeks` are drawn, or all."""
    days = every[-7 * weeks :] if weeks else every
    course = [each for each in course if each.day >= days[0].day]
    before = sum(day.settled for day in every[: len(every) - len(days)])
    charts = {
        "progress": _build_progress_chart(days, before, end, total),
        "contested": _build_contested_chart(days),
    }
    if waiting := _build_queue_chart(project):
        charts["queue"] = waiting
    if project.pay_per_hour is not None:
        charts["cost"] = _build_cost_chart(project, days)
    if course:
        charts |= {
            "alpha": _build_alpha_chart(_sample_course(course)),
            "mix": _build_label_mix_chart(_sample_course(course)),
        }
    return charts


def _build_progress_chart(
    days: Sequence[OverviewDay], before: int, end: CompletionForecast | None, total: int
) -> Chart:
    done, sofar = [], before
    for day in days:
        sofar += day.settled
        done.append((day.day, sofar))
    told = _("%(n)s settled") % {"n": f"{sofar:,}"}
    draw = partial(
        progress.draw_progress,
        [(days[0].day - dt.timedelta(days=1), before), *done],
        goal=max(total, sofar),
        end=end,
        name=_("Settled traces day by day, %(n)s of %(total)s now") % {"n": sofar, "total": total},
        dates=_format_date,
        words=(told, _("today")),
    )
    columns = (TableColumn(_("Day"), reads=str), TableColumn(_("Settled"), is_number=True))
    return draw_for_both_widths(
        draw, DataTable("settled", _("settled traces by day"), columns, done), wide=progress.WIDTH
    )


def _build_alpha_chart(course: Sequence[DailyProjectStats]) -> Chart:
    told = [each.content["steps"].get("alpha_nominal") or {} for each in course]
    places = [
        series.SeriesPoint(_format_date(each.day), one.get("value"), one.get("low"), one.get("high"))
        for each, one in zip(course, told, strict=True)
    ]
    svg = series.draw_dots(
        places,
        name=_("Alpha nominal as it stood day by day, with 95 percent intervals"),
        reads=number_format.format_share,
    )
    columns = (
        TableColumn(_("Day"), reads=str),
        *(
            TableColumn(each, is_number=True, reads=number_format.format_share)
            for each in (_("alpha"), _("from"), _("to"))
        ),
        *(TableColumn(each, is_number=True) for each in (_("n"), _("problems"))),
        TableColumn(_("what is missing, and why")),
    )
    figures = [statistics.build_estimate("alpha_nominal", one) for one in told]
    rows = [(day.day, f.value, f.low, f.high, f.n, f.n_problems, f.why) for day, f in zip(course, figures, strict=True)]
    return Chart(svg, DataTable("alpha", _("alpha nominal by day"), columns, rows))


def _build_label_mix_chart(course: Sequence[DailyProjectStats]) -> Chart:
    shares = [each.content.get("labels") or {} for each in course]
    negative, neutral = ([one.get(value, 0.0) for one in shares] for value in ("-1", "0"))
    layers = [
        bars.StackLayer("fn-l", _("negative"), negative, number_format.format_percent(negative[-1])),
        bars.StackLayer("fo-l", _("neutral"), neutral, number_format.format_percent(neutral[-1])),
    ]
    positive = 1 - negative[-1] - neutral[-1]
    svg = bars.draw_stacked_columns(
        [_format_date(each.day) for each in course],
        layers,
        name=_("Share of negative and neutral ratings day by day"),
        reads=number_format.format_percent,
        rest=(_("positive"), _("%(share)s, the rest") % {"share": number_format.format_percent(positive)}),
    )
    columns = (
        TableColumn(_("Day"), reads=str),
        *(
            TableColumn(name, is_number=True, reads=number_format.format_percent)
            for name in (_("Negative"), _("Neutral"), _("Positive"))
        ),
        TableColumn(_("Steps rated"), is_number=True),
    )
    n = [(each.content["steps"].get("alpha_nominal") or {}).get("n") for each in course]
    rows = [(each.day, a, b, 1 - a - b, of) for each, a, b, of in zip(course, negative, neutral, n, strict=True)]
    return Chart(svg, DataTable("labels", _("label mix by day"), columns, rows))


def _build_contested_chart(days: Sequence[OverviewDay]) -> Chart:
    """By week: of the traces that came to an end of their readings."""
    places, rows = [], []
    for week in _split_weeks(days):
        n, contested = sum(day.ended for day in week), sum(day.contested for day in week)
        around = intervals.wilson_interval(right=contested, n=n) if n else None
        low, high = (around.low, around.high) if around else (None, None)
        places.append(series.SeriesPoint(_format_date(week[0].day), contested / n if n else None, low, high))
        rows.append((week[0].day, places[-1].value, low, high, n))
    svg = series.draw_band(
        places, name=_("Contested share week by week, with 95 percent band"), reads=number_format.format_percent
    )
    columns = (
        TableColumn(_("Week of"), reads=str),
        *(
            TableColumn(name, is_number=True, reads=number_format.format_percent)
            for name in (_("Contested"), _("from"), _("to"))
        ),
        TableColumn(_("Traces"), is_number=True),
    )
    return Chart(svg, DataTable("contested", _("contested share by week"), columns, rows))


def _build_queue_chart(project: Project) -> Chart | None:
    lanes = queue.lane_depths(project_id=project.pk)
    found = [
        bars.BarValue(str(SamplingSource(lane.arm).label), lane.n_open, _describe_lane(lane))
        for lane in lanes
        if lane.n_open
    ]
    if not found:
        return None
    found.sort(key=lambda bar: -bar.value)
    draw = partial(bars.draw_horizontal_bars, found, name=_("Traces waiting, by arm"), reads=number_format.format_count)
    columns = (TableColumn(_("Arm")), TableColumn(_("Waiting"), is_number=True), TableColumn(_("Generation")))
    rows = [(bar.label, int(bar.value), bar.note) for bar in found]
    return draw_for_both_widths(draw, DataTable("queue", _("traces waiting by arm"), columns, rows))


def _describe_lane(lane: LaneDepth) -> str:
    more = _("or more") if lane.is_more else ""
    told = _("generation %(n)d") % {"n": lane.generation} if lane.generation else ""
    return ", ".join(each for each in (told, more) if each)


def _build_cost_chart(project: Project, days: Sequence[OverviewDay]) -> Chart:
    rows: list[tuple[dt.date, float | None, int]] = []
    for week in _split_weeks(days):
        spent, steps = (
            money.compute_labor_cost(project, sum(day.paid_ms for day in week)),
            sum(day.steps for day in week),
        )
        rows.append((week[0].day, float(spent / Decimal(steps)) if spent is not None and steps else None, steps))
    drawn = [bars.BarValue(_format_date(day), cost) for day, cost, _steps in rows if cost is not None]

    def reads(value: float) -> str:
        return money.format_amount(project, value, 3)

    draw = partial(bars.draw_columns, drawn, name=_("Cost of a settled step, week by week"), reads=reads)
    columns = (
        TableColumn(_("Week of"), reads=str),
        TableColumn(_("Cost of a step"), is_number=True, reads=reads),
        TableColumn(_("Steps"), is_number=True),
    )
    return draw_for_both_widths(draw, DataTable("cost", _("cost of a settled step by week"), columns, rows))


def _split_weeks(days: Sequence[OverviewDay]) -> list[Sequence[OverviewDay]]:
    """Sevens of days, the last one ending today."""
    first = len(days) % 7
    cut = [days[:first]] if first else []
    return [*cut, *(days[n : n + 7] for n in range(first, len(days), 7))][-MAX_POINTS:]


def _sample_course(course: Sequence[DailyProjectStats]) -> Sequence[DailyProjectStats]:
    """At most twelve, evenly, with the last one."""
    every = max(1, -(-len(course) // MAX_POINTS))
    return list(reversed(list(reversed(course))[::every]))


def _format_date(day: dt.date) -> str:
    return date_format(day, "j M")
