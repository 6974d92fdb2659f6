"""What raters did on each of the last fourteen days: small drawings, and the table behind them. Reads work days alone.

Days are those of UTC, as everywhere in figures."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from charts import bars, number_format, sparklines
from charts.svg import Svg
from dashboard.chart import Chart, draw_for_both_widths
from dashboard.tables import DataTable, TableColumn
from labeling.quality.workdays import load_work_since

N_DAYS = 14


@dataclass(frozen=True)
class ActivityDay:
    day: dt.date
    traces: int
    seconds: float | None  # of active time a trace


@dataclass(frozen=True)
class RecentActivity:
    """One rater's days, the oldest first."""

    days: Sequence[ActivityDay]

    @property
    def traces(self) -> Svg:
        counts = [each.traces for each in self.days]
        told = _("%(n)d traces in 14 days, %(most)d on the best of them") % {"n": sum(counts), "most": max(counts)}
        return sparklines.draw_bar_sparkline(counts, name=told)

    @property
    def pace(self) -> Svg | None:
        """None where no time was measured."""
        known = [f"{each.seconds:.0f}" for each in self.days if each.seconds is not None]
        if not known:
            return None
        told = _("seconds a trace: first %(first)s, last %(last)s") % {"first": known[0], "last": known[-1]}
        return sparklines.draw_line_sparkline([each.seconds for each in self.days], name=told)


def load_recent_activity(
    project_id: int, now: dt.datetime, *, rater_id: int | None = None
) -> dict[int, RecentActivity]:
    """By rater; who did nothing in these days is missing."""
    today = now.astimezone(dt.UTC).date()
    days = [today - dt.timedelta(days=n) for n in reversed(range(N_DAYS))]
    found = load_work_since(project_id, days[0], rater_id=rater_id)
    return {rater: RecentActivity([_build_day(day, worked) for day in days]) for rater, worked in found.items()}


def _build_day(day: dt.date, worked: Mapping[dt.date, tuple[int, int]]) -> ActivityDay:
    traces, active_ms = worked.get(day, (0, 0))
    return ActivityDay(day, traces, active_ms / 1000 / traces if traces and active_ms else None)


def build_activity_table(people: Sequence[tuple[str, RecentActivity]]) -> DataTable:
    """A line for each person and day: the file behind the drawings of many."""
    rows = [(name, each.day, each.traces, _round_seconds(each)) for name, lately in people for each in lately.days]
    return DataTable("days", _("traces and pace by person and day"), [TableColumn(_("Name")), *_build_columns()], rows)


def draw_activity_chart(lately: RecentActivity) -> Chart:
    """The days of one person."""
    columns = [bars.BarValue(date_format(each.day, "j M"), each.traces) for each in lately.days]
    draw = partial(
        bars.draw_columns, columns, name=_("Traces on each of the last 14 days"), reads=number_format.format_count
    )
    rows = [(each.day, each.traces, _round_seconds(each)) for each in lately.days]
    return draw_for_both_widths(draw, DataTable("days", _("traces and pace by day"), _build_columns(), rows))


def _build_columns() -> list[TableColumn]:
    return [
        TableColumn(_("Day"), reads=str),
        TableColumn(_("Traces"), is_number=True),
        TableColumn(_("Seconds a trace"), is_number=True),
    ]


def _round_seconds(day: ActivityDay) -> float | None:
    return None if day.seconds is None else round(day.seconds, 1)
