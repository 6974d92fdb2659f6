"""Progress chart: a line up to today, and a cone to the forecast completion."""

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from charts.scales import AxisScale, choose_ticks, draw_axis_labels, draw_gridlines
from charts.svg import Drawing, Svg

WIDTH, HEIGHT = 760.0, 226.0
_LEFT, _TOP, _FLOOR = 52.0, 12.0, 202.0
_LABEL_ROOM = 64.0  # for the labels at the right
DateFormatter = Callable[[dt.date], str]


@dataclass(frozen=True)
class CompletionForecast:
    """The most likely completion date with its interval."""

    on: dt.date
    first: dt.date
    last: dt.date


def draw_progress(
    done: Sequence[tuple[dt.date, int]],
    *,
    goal: int,
    end: CompletionForecast | None,
    name: str,
    dates: DateFormatter,
    words: tuple[str, str],
    width: float = WIDTH,
) -> Svg:
    """Draw the cumulative counts in `done`, whose last day is today. `words` label today's value and today."""
    drawing, right = Drawing(width, HEIGHT, name), width - _LABEL_ROOM
    first, today = done[0][0], done[-1][0]
    last = max(today, min(end.last, today + (today - first) * 2 + dt.timedelta(days=14))) if end else today
    along = AxisScale(first.toordinal(), max(last.toordinal(), first.toordinal() + 1), _LEFT, right)
    at = choose_ticks(0, max(goal, done[-1][1], 1))
    up = AxisScale(0, at[-1], _FLOOR, _TOP)
    draw_gridlines(drawing, up, at, _LEFT, right, lambda value: f"{value:,.0f}")
    _name_days(drawing, along, first, last, dates)
    now = (along(today.toordinal()), up(done[-1][1]))
    if end is not None:
        _draw_cone(drawing, along, up, now, end, goal, dates)
    drawing.line([(along(day.toordinal()), up(n)) for day, n in done], "l1")
    drawing.line([(now[0], _TOP), (now[0], _FLOOR)], "ref")
    drawing.dot(now, radius=3.5)
    _name_today(drawing, now, words)
    return drawing.to_svg()


def _name_today(drawing: Drawing, now: tuple[float, float], words: tuple[str, str]) -> None:
    """Label today on the left of its line, or on the right if there is no room."""
    value_label, today_label = words
    if now[0] > _LEFT + 7 * len(value_label):
        drawing.text((now[0] - 10, max(now[1] - 6, _TOP + 22)), value_label, "t", "end")
        drawing.text((now[0] - 6, _TOP + 8), today_label, anchor="end")
    else:
        drawing.text((now[0] + 10, min(now[1] + 16, _FLOOR - 6)), value_label, "t")
        drawing.text((now[0] + 6, _TOP + 8), today_label)


def _name_days(drawing: Drawing, along: AxisScale, first: dt.date, last: dt.date, dates: DateFormatter) -> None:
    span = max((last - first).days, 1)
    parts = 4 if along.end > WIDTH / 2 else 2
    days = (
        [first + dt.timedelta(days=round(span * n / parts)) for n in range(parts + 1)] if span >= 4 else [first, last]
    )
    draw_axis_labels(drawing, [along(day.toordinal()) for day in days], [dates(day) for day in days], 217)


def _draw_cone(
    drawing: Drawing,
    along: AxisScale,
    up: AxisScale,
    now: tuple[float, float],
    end: CompletionForecast,
    goal: int,
    dates: DateFormatter,
) -> None:
    y = up(goal)
    first, on, last = (along.clamp(day.toordinal()) for day in (end.first, end.on, end.last))
    drawing.area([now, (first, y)], [now, (last, y)], "band")
    drawing.line([now, (on, y)], "l2")
    drawing.line([(first, y), (last, y)], "now-l")
    drawing.dot((on, y), radius=3.5)
    drawing.text((min(on + 6, along.end - 30), y + 22), dates(end.on), "t")
    drawing.text((min(on + 6, along.end - 30), y + 36), f"{dates(end.first)} – {dates(end.last)}")
