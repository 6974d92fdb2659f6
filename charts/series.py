"""Line charts over time or over steps: series with a band or with intervals, and progress with its forecast."""

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from charts.number_format import format_count
from charts.svg import AxisScale, Drawing, NumberFormatter, Point, Svg, draw_axis_labels, draw_value_axis

WIDTH, HEIGHT = 372.0, 164.0
PROGRESS_WIDTH = 760.0
_TOP, _BOTTOM = 10.0, 22.0
DateFormatter = Callable[[dt.date], str]


@dataclass(frozen=True)
class SeriesPoint:
    """One value with its interval at a labeled position. A missing value leaves a gap."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None


class SeriesChart:
    """A drawing with its axes and the horizontal places of the points."""

    def __init__(self, points: Sequence[SeriesPoint], name: str, reads: NumberFormatter, right: float) -> None:
        known = [each for point in points for each in (point.value, point.low, point.high) if each is not None]
        low, high = min(known, default=0.0), max(known, default=1.0)
        if 0 <= low == high <= 1:  # an axis from a single share upward would exceed 1
            low, high = 0.0, 1.0
        self.points, self.drawing, right = points, Drawing(WIDTH, HEIGHT, name), WIDTH - right
        self.up, left = draw_value_axis(
            self.drawing, low, high, floor=HEIGHT - _BOTTOM, top=_TOP, right=right, reads=reads
        )
        spread = AxisScale(0, max(len(points) - 1, 1), left + 14, right - 14)
        self.across = [spread(n) for n in range(len(points))]
        draw_axis_labels(self.drawing, self.across, [point.label for point in points], HEIGHT - 7)

    def split_runs(self) -> list[list[Point]]:
        """Split the points at missing values."""
        runs: list[list[Point]] = [[]]
        for x, point in zip(self.across, self.points, strict=True):
            if point.value is None:
                runs.append([])
            else:
                runs[-1].append((x, self.up(point.value)))
        return [run for run in runs if run]

    def mark_event(self, n: int, label: str) -> None:
        x, is_late = self.across[n], n > len(self.across) / 2
        self.drawing.line([(x, _TOP), (x, HEIGHT - _BOTTOM)], "ref")
        self.drawing.text((x - 5 if is_late else x + 5, _TOP + 8), label, anchor="end" if is_late else "start")


def draw_dots(
    points: Sequence[SeriesPoint], *, name: str, reads: NumberFormatter, marks: Sequence[tuple[int, str]] = ()
) -> Svg:
    """Draw dots on their intervals, joined by a thin line. `marks` label events at a position."""
    chart = SeriesChart(points, name, reads, right=8)
    for n, label in marks:
        chart.mark_event(n, label)
    for x, point in zip(chart.across, points, strict=True):
        if point.low is not None and point.high is not None:
            chart.drawing.line([(x, chart.up(point.low)), (x, chart.up(point.high))], "range-s")
    for run in chart.split_runs():
        if len(run) > 1:
            chart.drawing.line(run, "l3")
        for xy in run:
            chart.drawing.dot(xy)
    return chart.drawing.to_svg()


def draw_band(points: Sequence[SeriesPoint], *, name: str, reads: NumberFormatter) -> Svg:
    """Draw a line within the band of its intervals, with the last value at its end."""
    chart = SeriesChart(points, name, reads, right=46)
    whole = [(x, each) for x, each in zip(chart.across, points, strict=True) if None not in (each.low, each.high)]
    if len(whole) > 1:
        upper = [(x, chart.up(each.high or 0)) for x, each in whole]
        chart.drawing.area(upper, [(x, chart.up(each.low or 0)) for x, each in whole], "band")
    runs = chart.split_runs()
    for run in runs:
        chart.drawing.line(run, "l1")
    if runs:
        x, y = runs[-1][-1]
        last = next(point.value for point in reversed(points) if point.value is not None)
        chart.drawing.dot((x, y), radius=3.5)
        chart.drawing.text((x + 8, y + 4), reads(last), "t")
    return chart.drawing.to_svg()


@dataclass(frozen=True)
class CompletionForecast:
    """The most likely completion date with its interval."""

    on: dt.date
    first: dt.date
    last: dt.date


_PROGRESS_LEFT, _PROGRESS_TOP, _PROGRESS_FLOOR = 52.0, 12.0, 202.0


def draw_progress(
    done: Sequence[tuple[dt.date, int]],
    *,
    goal: int,
    end: CompletionForecast | None,
    name: str,
    dates: DateFormatter,
    words: tuple[str, str],
    width: float = PROGRESS_WIDTH,
) -> Svg:
    """Draw a line of the cumulative counts in `done`, whose last day is today, and a cone to the forecast completion.

    `words` label today's value and today."""
    drawing, right = Drawing(width, 226, name), width - 64  # room for the labels at the right
    first, today = done[0][0], done[-1][0]
    last = max(today, min(end.last, today + (today - first) * 2 + dt.timedelta(days=14))) if end else today
    along = AxisScale(first.toordinal(), max(last.toordinal(), first.toordinal() + 1), _PROGRESS_LEFT, right)
    up, _left = draw_value_axis(
        drawing,
        0,
        max(goal, done[-1][1], 1),
        floor=_PROGRESS_FLOOR,
        top=_PROGRESS_TOP,
        left=_PROGRESS_LEFT,
        right=right,
        reads=format_count,
    )
    _name_days(drawing, along, first, last, dates)
    now = (along(today.toordinal()), up(done[-1][1]))
    if end is not None:
        _draw_cone(drawing, along, now, up(goal), end, dates)
    drawing.line([(along(day.toordinal()), up(n)) for day, n in done], "l1")
    drawing.line([(now[0], _PROGRESS_TOP), (now[0], _PROGRESS_FLOOR)], "ref")
    drawing.dot(now, radius=3.5)
    _name_today(drawing, now, words)
    return drawing.to_svg()


def _name_today(drawing: Drawing, now: Point, words: tuple[str, str]) -> None:
    """Label today on the left of its line, or on the right if there is no room."""
    value_label, today_label = words
    if now[0] > _PROGRESS_LEFT + 7 * len(value_label):
        drawing.text((now[0] - 10, max(now[1] - 6, _PROGRESS_TOP + 22)), value_label, "t", "end")
        drawing.text((now[0] - 6, _PROGRESS_TOP + 8), today_label, anchor="end")
    else:
        drawing.text((now[0] + 10, min(now[1] + 16, _PROGRESS_FLOOR - 6)), value_label, "t")
        drawing.text((now[0] + 6, _PROGRESS_TOP + 8), today_label)


def _name_days(drawing: Drawing, along: AxisScale, first: dt.date, last: dt.date, dates: DateFormatter) -> None:
    span = max((last - first).days, 1)
    parts = 4 if along.end > PROGRESS_WIDTH / 2 else 2
    days = [first, last]
    if span >= 4:
        days = [first + dt.timedelta(days=round(span * n / parts)) for n in range(parts + 1)]
    draw_axis_labels(drawing, [along(day.toordinal()) for day in days], [dates(day) for day in days], 217)


def _draw_cone(
    drawing: Drawing, along: AxisScale, now: Point, y: float, end: CompletionForecast, dates: DateFormatter
) -> None:
    first, on, last = (along.clamp(day.toordinal()) for day in (end.first, end.on, end.last))
    drawing.area([now, (first, y)], [now, (last, y)], "band")
    drawing.line([now, (on, y)], "l2")
    drawing.line([(first, y), (last, y)], "now-l")
    drawing.dot((on, y), radius=3.5)
    x = min(on + 6, along.end - 30)
    drawing.text((x, y + 22), dates(end.on), "t")
    drawing.text((x, y + 36), f"{dates(end.first)} – {dates(end.last)}")
