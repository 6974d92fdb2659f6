"""Activity of raters on each of the last 14 days (UTC): sparklines and their table."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from charts import bars, cells, number_format
from charts.svg import Svg
from dashboard.figures import Chart, DataTable, TableColumn, draw_for_both_widths, number_columns
from labeling.quality.workdays import load_work_since

N_DAYS = 14


@dataclass(frozen=True)
class ActivityDay:
    day: dt.date
    traces: int
    seconds: float | None  # active time per trace


@dataclass(frozen=True)
class RecentActivity:
    """One rater's days, oldest first."""

    days: Sequence[ActivityDay]

    @property
    def traces(self) -> Svg:
        counts = [each.traces for each in self.days]
        name = _("%(n)d traces in 14 days, up to %(most)d per day") % {"n": sum(counts), "most": max(counts)}
        return cells.draw_bar_sparkline(counts, name=name)

    @property
    def pace(self) -> Svg | None:
        """None if no time was measured."""
        known = [f"{each.seconds:.0f}" for each in self.days if each.seconds is not None]
        if not known:
            return None
        name = _("seconds per trace: first %(first)s, last %(last)s") % {"first": known[0], "last": known[-1]}
        return cells.draw_line_sparkline([each.seconds for each in self.days], name=name)


def load_recent_activity(
    project_id: int, now: dt.datetime, *, rater_id: int | None = None
) -> dict[int, RecentActivity]:
    """Load activity by rater. Raters without activity are missing."""
    today = now.astimezone(dt.UTC).date()
    days = [today - dt.timedelta(days=n) for n in reversed(range(N_DAYS))]
    work = load_work_since(project_id, days[0], rater_id=rater_id)
    return {rater: RecentActivity([_build_day(day, worked) for day in days]) for rater, worked in work.items()}


def _build_day(day: dt.date, worked: Mapping[dt.date, tuple[int, int]]) -> ActivityDay:
    traces, active_ms = worked.get(day, (0, 0))
    return ActivityDay(day, traces, active_ms / 1000 / traces if traces and active_ms else None)


def build_activity_table(people: Sequence[tuple[str, RecentActivity]]) -> DataTable:
    """Build the table of several people: one row per person and day."""
    rows = [(name, each.day, each.traces, _round_seconds(each)) for name, activity in people for each in activity.days]
    return DataTable("days", _("Traces and pace by person and day"), [TableColumn(_("Name")), *_build_columns()], rows)


def draw_activity_chart(activity: RecentActivity) -> Chart:
    """Draw the days of one person."""
    columns = [bars.BarValue(date_format(each.day, "j M"), each.traces) for each in activity.days]
    draw = partial(bars.draw_columns, columns, name=_("Traces per day, last 14 days"), reads=number_format.format_count)
    rows = [(each.day, each.traces, _round_seconds(each)) for each in activity.days]
    return draw_for_both_widths(draw, DataTable("days", _("Daily traces and pace"), _build_columns(), rows))


def _build_columns() -> list[TableColumn]:
    return [TableColumn(_("Day")), *number_columns(_("Traces"), _("Seconds per trace"))]


def _round_seconds(day: ActivityDay) -> float | None:
    return None if day.seconds is None else round(day.seconds, 1)
