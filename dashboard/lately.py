"""What raters did on each of the last fourteen days: small drawings, and the table behind them. Reads work days alone.

Days are those of UTC, as everywhere in figures."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from dashboard.charts import Chart, bars, small, words
from dashboard.charts.drawing import Svg
from dashboard.charts.twice import twice
from dashboard.tables import Column, Table
from labeling import quality

DAYS = 14


@dataclass(frozen=True)
class Day:
    day: dt.date
    traces: int
    seconds: float | None  # of active time a trace


@dataclass(frozen=True)
class Lately:
    """One rater's days, the oldest first."""

    days: Sequence[Day]

    @property
    def traces(self) -> Svg:
        counts = [each.traces for each in self.days]
        told = _("%(n)d traces in 14 days, %(most)d on the best of them") % {"n": sum(counts), "most": max(counts)}
        return small.bars(counts, name=told)

    @property
    def pace(self) -> Svg | None:
        """None where no time was measured."""
        known = [f"{each.seconds:.0f}" for each in self.days if each.seconds is not None]
        if not known:
            return None
        told = _("seconds a trace: first %(first)s, last %(last)s") % {"first": known[0], "last": known[-1]}
        return small.line([each.seconds for each in self.days], name=told)


def of(project_id: int, now: dt.datetime, *, rater_id: int | None = None) -> dict[int, Lately]:
    """By rater; who did nothing in these days is missing."""
    today = now.astimezone(dt.UTC).date()
    days = [today - dt.timedelta(days=n) for n in reversed(range(DAYS))]
    found = quality.work_since(project_id, days[0], rater_id=rater_id)
    return {rater: Lately([_day(day, worked) for day in days]) for rater, worked in found.items()}


def _day(day: dt.date, worked: Mapping[dt.date, tuple[int, int]]) -> Day:
    traces, active_ms = worked.get(day, (0, 0))
    return Day(day, traces, active_ms / 1000 / traces if traces and active_ms else None)


def table(people: Sequence[tuple[str, Lately]]) -> Table:
    """A line for each person and day: the file behind the drawings of many."""
    rows = [(name, each.day, each.traces, _rounded(each)) for name, lately in people for each in lately.days]
    return Table("days", _("traces and pace by person and day"), [Column(_("Name")), *_columns()], rows)


def chart(lately: Lately) -> Chart:
    """The days of one person."""
    columns = [bars.Bar(date_format(each.day, "j M"), each.traces) for each in lately.days]
    draw = partial(bars.columns, columns, name=_("Traces on each of the last 14 days"), reads=words.count)
    rows = [(each.day, each.traces, _rounded(each)) for each in lately.days]
    return twice(draw, Table("days", _("traces and pace by day"), _columns(), rows))


def _columns() -> list[Column]:
    return [
        Column(_("Day"), reads=str),
        Column(_("Traces"), is_number=True),
        Column(_("Seconds a trace"), is_number=True),
    ]


def _rounded(day: Day) -> float | None:
    return None if day.seconds is None else round(day.seconds, 1)
