"""Series charts over time or over steps: a line with a band, or dots with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

from charts.scales import AxisScale, NumberFormatter, choose_ticks, draw_axis_labels, draw_gridlines
from charts.svg import Drawing, Point, Svg

WIDTH, HEIGHT = 372.0, 164.0
_TOP, _BOTTOM = 10.0, 22.0


@dataclass(frozen=True)
class SeriesPoint:
    """One value with its interval at a labeled position. A missing value leaves a gap."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class SeriesCanvas:
    drawing: Drawing
    across: list[float]
    up: AxisScale


def draw_dots(
    points: Sequence[SeriesPoint], *, name: str, reads: NumberFormatter, marks: Sequence[tuple[int, str]] = ()
) -> Svg:
    """Draw dots on their intervals, joined by a thin line. `marks` label events at a position."""
    canvas = _prepare_canvas(points, name, reads, right=8)
    _draw_marks(canvas, marks)
    for x, point in zip(canvas.across, points, strict=True):
        if point.low is not None and point.high is not None:
            canvas.drawing.line([(x, canvas.up(point.low)), (x, canvas.up(point.high))], "range-s")
    for run in _split_runs(canvas, points):
        if len(run) > 1:
            canvas.drawing.line(run, "l3")
        for xy in run:
            canvas.drawing.dot(xy)
    return canvas.drawing.to_svg()


def draw_band(points: Sequence[SeriesPoint], *, name: str, reads: NumberFormatter) -> Svg:
    """Draw a line within the band of its intervals, with the last value at its end."""
    canvas = _prepare_canvas(points, name, reads, right=46)
    whole = [(x, each) for x, each in zip(canvas.across, points, strict=True) if None not in (each.low, each.high)]
    if len(whole) > 1:
        upper = [(x, canvas.up(each.high or 0)) for x, each in whole]
        canvas.drawing.area(upper, [(x, canvas.up(each.low or 0)) for x, each in whole], "band")
    runs = _split_runs(canvas, points)
    for run in runs:
        canvas.drawing.line(run, "l1")
    if runs:
        last = next(point.value for point in reversed(points) if point.value is not None)
        canvas.drawing.dot(runs[-1][-1], radius=3.5)
        canvas.drawing.text((runs[-1][-1][0] + 8, runs[-1][-1][1] + 4), reads(last), "t")
    return canvas.drawing.to_svg()


def _prepare_canvas(points: Sequence[SeriesPoint], name: str, reads: NumberFormatter, right: float) -> SeriesCanvas:
    known = [each for point in points for each in (point.value, point.low, point.high) if each is not None]
    at = choose_ticks(*_find_range(known))
    left = 10 + 6.2 * max(len(reads(value)) for value in at)
    drawing = Drawing(WIDTH, HEIGHT, name)
    up = AxisScale(at[0], at[-1], HEIGHT - _BOTTOM, _TOP)
    draw_gridlines(drawing, up, at, left, WIDTH - right, reads)
    spread = AxisScale(0, max(len(points) - 1, 1), left + 14, WIDTH - right - 14)
    across = [spread(n) for n in range(len(points))]
    draw_axis_labels(drawing, across, [point.label for point in points], HEIGHT - 7)
    return SeriesCanvas(drawing, across, up)


def _find_range(known: Sequence[float]) -> tuple[float, float]:
    """Find the range of the axis. A single share gets 0 to 1, because an axis from it upward would exceed 1."""
    low, high = min(known, default=0.0), max(known, default=1.0)
    return (0.0, 1.0) if 0 <= low == high <= 1 else (low, high)


def _draw_marks(canvas: SeriesCanvas, marks: Sequence[tuple[int, str]]) -> None:
    for n, label in marks:
        x = canvas.across[n]
        canvas.drawing.line([(x, _TOP), (x, HEIGHT - _BOTTOM)], "ref")
        is_late = n > len(canvas.across) / 2
        canvas.drawing.text((x - 5 if is_late else x + 5, _TOP + 8), label, anchor="end" if is_late else "start")


def _split_runs(canvas: SeriesCanvas, points: Sequence[SeriesPoint]) -> list[list[Point]]:
    """Split the points at missing values."""
    runs: list[list[Point]] = [[]]
    for x, point in zip(canvas.across, points, strict=True):
        if point.value is None:
            runs.append([])
        else:
            runs[-1].append((x, canvas.up(point.value)))
    return [run for run in runs if run]
