"""The charts of the overview with their tables, for the whole project or for its last weeks, and the forecast."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

import numpy as np
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from charts import bars, number_format, series
from charts.series import CompletionForecast
from dashboard import money, statistics
from dashboard.figures import Chart, DataTable, TableColumn, draw_for_both_widths, number_columns
from labeling import queue
from labeling.models import DailyProjectStats, Project
from labeling.models.queue import SamplingSource
from labeling.queue.lane_entries import LaneDepth
from stats import intervals

MAX_POINTS = 12  # on a time axis


@dataclass(frozen=True)
class OverviewDay:
    day: dt.date
    ended: int  # traces that were settled, decided or contested
    contested: int
    steps: int
    cost: Decimal

    @property
    def settled(self) -> int:
        return self.ended - self.contested


def build_overview_charts(
    project: Project,
    all_days: Sequence[OverviewDay],
    end: CompletionForecast | None,
    total: int,
    daily_stats: Sequence[DailyProjectStats],
    weeks: int | None,
) -> dict[str, Chart]:
    """Build the charts for the last `weeks`, or for all days. `all_days` runs from the first day to today."""
    days = all_days[-7 * weeks :] if weeks else all_days
    daily_stats = [stats for stats in daily_stats if stats.day >= days[0].day]
    settled_before = sum(day.settled for day in all_days[: len(all_days) - len(days)])
    charts = {
        "progress": _build_progress_chart(days, settled_before, end, total),
        "contested": _build_contested_chart(days),
    }
    if queue_chart := _build_queue_chart(project):
        charts["queue"] = queue_chart
    if project.pay_per_hour is not None:
        charts["cost"] = _build_cost_chart(project, days)
    if daily_stats:
        sample = _sample_evenly(daily_stats)
        charts["alpha"] = _build_alpha_chart(sample)
        if rated := [stats for stats in sample if sum(stats.content["mix"].values())]:
            charts["mix"] = _build_label_mix_chart(rated)
    return charts


def _build_progress_chart(
    days: Sequence[OverviewDay], settled_before: int, end: CompletionForecast | None, total: int
) -> Chart:
    points, settled = [], settled_before
    for day in days:
        settled += day.settled
        points.append((day.day, settled))
    draw = partial(
        series.draw_progress,
        [(days[0].day - dt.timedelta(days=1), settled_before), *points],
        goal=max(total, settled),
        end=end,
        name=_("Settled traces per day, now %(n)s of %(total)s") % {"n": settled, "total": total},
        dates=_format_date,
        words=(_("%(n)s settled") % {"n": f"{settled:,}"}, _("today")),
    )
    columns = (TableColumn(_("Day")), *number_columns(_("Settled")))
    return draw_for_both_widths(
        draw, DataTable("settled", _("settled traces per day"), columns, points), wide=series.PROGRESS_WIDTH
    )


def _build_alpha_chart(daily_stats: Sequence[DailyProjectStats]) -> Chart:
    estimates = [
        (stats.day, statistics.build_estimate("alpha_nominal", stats.content["steps"].get("alpha_nominal")))
        for stats in daily_stats
    ]
    points = [series.SeriesPoint(_format_date(day), each.value, each.low, each.high) for day, each in estimates]
    svg = series.draw_dots(
        points, name=_("Daily nominal alpha, with 95 percent intervals"), reads=number_format.format_share
    )
    columns = (
        TableColumn(_("Day")),
        *statistics.share_columns(_("alpha")),
        *number_columns(_("n"), _("problems")),
        TableColumn(_("reason if missing")),
    )
    rows = [(day, each.value, each.low, each.high, each.n, each.n_problems, each.why) for day, each in estimates]
    return Chart(svg, DataTable("alpha", _("daily nominal alpha"), columns, rows))


def _build_label_mix_chart(daily_stats: Sequence[DailyProjectStats]) -> Chart:
    counts = [sum(stats.content["mix"].values()) for stats in daily_stats]
    negative, neutral = (
        [stats.content["mix"][rating] / n for stats, n in zip(daily_stats, counts, strict=True)]
        for rating in ("-1", "0")
    )
    layers = [
        bars.StackLayer("fn-l", _("negative"), negative, number_format.format_percent(negative[-1])),
        bars.StackLayer("fo-l", _("neutral"), neutral, number_format.format_percent(neutral[-1])),
    ]
    positive = 1 - negative[-1] - neutral[-1]
    svg = bars.draw_stacked_columns(
        [_format_date(stats.day) for stats in daily_stats],
        layers,
        name=_("Daily share of negative and neutral ratings"),
        reads=number_format.format_percent,
        rest=(_("positive"), _("%(share)s, not shown") % {"share": number_format.format_percent(positive)}),
    )
    columns = (
        TableColumn(_("Day")),
        *number_columns(_("Negative"), _("Neutral"), _("Positive"), reads=number_format.format_percent),
        *number_columns(_("Ratings")),
    )
    rows = [
        (stats.day, low, mid, 1 - low - mid, n)
        for stats, low, mid, n in zip(daily_stats, negative, neutral, counts, strict=True)
    ]
    return Chart(svg, DataTable("labels", _("daily label mix"), columns, rows))


def _build_contested_chart(days: Sequence[OverviewDay]) -> Chart:
    points, rows = [], []
    for week in _split_weeks(days):
        n, contested = sum(day.ended for day in week), sum(day.contested for day in week)
        interval = intervals.wilson_interval(right=contested, n=n) if n else None
        low, high = (interval.low, interval.high) if interval else (None, None)
        share = contested / n if n else None
        points.append(series.SeriesPoint(_format_date(week[0].day), share, low, high))
        rows.append((week[0].day, share, low, high, n))
    svg = series.draw_band(
        points, name=_("Contested share by week, with 95 percent intervals"), reads=number_format.format_percent
    )
    columns = (
        TableColumn(_("Week of")),
        *statistics.share_columns(_("Contested"), number_format.format_percent),
        *number_columns(_("Traces")),
    )
    return Chart(svg, DataTable("contested", _("contested share by week"), columns, rows))


def _build_queue_chart(project: Project) -> Chart | None:
    values = [
        bars.BarValue(str(SamplingSource(lane.arm).label), lane.n_open, _describe_lane(lane))
        for lane in queue.lane_depths(project_id=project.pk)
        if lane.n_open
    ]
    if not values:
        return None
    values.sort(key=lambda bar: -bar.value)
    name = _("Traces in the queue by sampling source")
    draw = partial(bars.draw_horizontal_bars, values, name=name, reads=number_format.format_count)
    columns = (TableColumn(_("Sampling source")), *number_columns(_("Traces")), TableColumn(_("Generation")))
    rows = [(bar.label, int(bar.value), bar.note) for bar in values]
    return draw_for_both_widths(draw, DataTable("queue", _("traces in the queue by sampling source"), columns, rows))


def _describe_lane(lane: LaneDepth) -> str:
    generation = _("generation %(n)d") % {"n": lane.generation} if lane.generation else ""
    more = _("or more") if lane.is_more else ""
    return ", ".join(text for text in (generation, more) if text)


def _build_cost_chart(project: Project, days: Sequence[OverviewDay]) -> Chart:
    rows: list[tuple[dt.date, float | None, int]] = []
    for week in _split_weeks(days):
        steps = sum(day.steps for day in week)
        cost = sum((day.cost for day in week), Decimal(0))
        rows.append((week[0].day, float(cost / steps) if steps else None, steps))
    values = [bars.BarValue(_format_date(day), cost) for day, cost, _steps in rows if cost is not None]

    def format_cost(value: float) -> str:
        return money.format_amount(project, value, 3)

    draw = partial(bars.draw_columns, values, name=_("Cost per settled step by week"), reads=format_cost)
    columns = (
        TableColumn(_("Week of")),
        *number_columns(_("Cost per step"), reads=format_cost),
        *number_columns(_("Steps")),
    )
    return draw_for_both_widths(draw, DataTable("cost", _("cost per settled step by week"), columns, rows))


def _split_weeks(days: Sequence[OverviewDay]) -> list[Sequence[OverviewDay]]:
    """Split into periods of seven days, of which the last ends today."""
    first = len(days) % 7
    start = [days[:first]] if first else []
    return [*start, *(days[n : n + 7] for n in range(first, len(days), 7))][-MAX_POINTS:]


def _sample_evenly(daily_stats: Sequence[DailyProjectStats]) -> Sequence[DailyProjectStats]:
    """Return at most MAX_POINTS days at equal distances, including the last one."""
    distance = max(1, -(-len(daily_stats) // MAX_POINTS))
    return daily_stats[::-1][::distance][::-1]


def _format_date(day: dt.date) -> str:
    return date_format(day, "j M")


PACE_DAYS = 21
MIN_ACTIVE_DAYS = 5  # days on which a trace was settled; fewer give no pace
_N_DRAWS = 2000
_MAX_DAYS = 3650


def forecast_completion(daily: Sequence[int], *, remaining: int, today: dt.date) -> CompletionForecast | None:
    """Return the expected completion date, with the range of 90 % of the simulated ones.

    `daily` has the number of traces settled on each of the last days, idle days as 0. Return None if too few days had
    activity.
    """
    pace = np.asarray(daily[-PACE_DAYS:], dtype=np.float64)
    if remaining <= 0 or (pace > 0).sum() < MIN_ACTIVE_DAYS:
        return None
    drawn = np.random.default_rng(0).choice(pace, size=(_N_DRAWS, len(pace))).mean(axis=1)
    days = np.minimum(remaining / np.maximum(drawn, remaining / _MAX_DAYS), _MAX_DAYS)
    first, last = np.quantile(days, [0.05, 0.95])
    likely = min(remaining / pace.mean(), _MAX_DAYS)
    return CompletionForecast(
        *(today + dt.timedelta(days=int(np.ceil(each))) for each in (likely, min(first, likely), max(last, likely)))
    )
