"""Something over time, or over the steps of a trace: a line with a band, or dots with their intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

from charts.scales import AxisScale, NumberFormatter, choose_ticks, draw_axis_labels, draw_gridlines
from charts.svg import Drawing, Point, Svg

WIDTH, HEIGHT = 372.0, 164.0
_TOP, _BOTTOM = 10.0, 22.0


@dataclass(frozen=True)
class SeriesPoint:
    """One value with its interval at a labelled place; a value that is not known leaves a gap."""

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
    places: Sequence[SeriesPoint], *, name: str, reads: NumberFormatter, marks: Sequence[tuple[int, str]] = ()
) -> Svg:
    """Each value on its range, joined by a thin line. `marks` say what happened at a place."""
    paper = _prepare_canvas(places, name, reads, right=8)
    _draw_marks(paper, marks)
    for x, place in zip(paper.across, places, strict=True):
        if place.low is not None and place.high is not None:
            paper.drawing.line([(x, paper.up(place.low)), (x, paper.up(place.high))], "range-s")
    for run in _split_runs(paper, places):
        if len(run) > 1:
            paper.drawing.line(run, "l3")
        for point in run:
            paper.drawing.dot(point)
    return paper.drawing.done()


def draw_band(places: Sequence[SeriesPoint], *, name: str, reads: NumberFormatter) -> Svg:
    """A line within the band of its intervals; the last value stands at the line's end."""
    paper = _prepare_canvas(places, name, reads, right=46)
    whole = [(x, each) for x, each in zip(paper.across, places, strict=True) if None not in (each.low, each.high)]
    if len(whole) > 1:
        upper = [(x, paper.up(each.high or 0)) for x, each in whole]
        paper.drawing.area(upper, [(x, paper.up(each.low or 0)) for x, each in whole], "band")
    runs = _split_runs(paper, places)
    for run in runs:
        paper.drawing.line(run, "l1")
    if runs:
        last = next(place.value for place in reversed(places) if place.value is not None)
        paper.drawing.dot(runs[-1][-1], radius=3.5)
        paper.drawing.word((runs[-1][-1][0] + 8, runs[-1][-1][1] + 4), reads(last), "t")
    return paper.drawing.done()


def _prepare_canvas(places: Sequence[SeriesPoint], name: str, reads: NumberFormatter, right: float) -> SeriesCanvas:
    known = [each for place in places for each in (place.value, place.low, place.high) if each is not None]
    at = choose_ticks(*_find_range(known))
    left = 10 + 6.2 * max(len(reads(value)) for value in at)
    drawing = Drawing(WIDTH, HEIGHT, name)
    up = AxisScale(at[0], at[-1], HEIGHT - _BOTTOM, _TOP)
    draw_gridlines(drawing, up, at, left, WIDTH - right, reads)
    spread = AxisScale(0, max(len(places) - 1, 1), left + 14, WIDTH - right - 14)
    across = [spread(n) for n in range(len(places))]
    draw_axis_labels(drawing, across, [place.label for place in places], HEIGHT - 7)
    return SeriesCanvas(drawing, across, up)


def _find_range(known: Sequence[float]) -> tuple[float, float]:
    """From where to where. One share alone stands between nothing and all: an axis from it upwards would leave 1."""
    low, high = min(known, default=0.0), max(known, default=1.0)
    return (0.0, 1.0) if 0 <= low == high <= 1 else (low, high)


def _draw_marks(paper: SeriesCanvas, marks: Sequence[tuple[int, str]]) -> None:
    for n, label in marks:
        x = paper.across[n]
        paper.drawing.line([(x, _TOP), (x, HEIGHT - _BOTTOM)], "ref")
        is_late = n > len(paper.across) / 2
        paper.drawing.word((x - 5 if is_late else x + 5, _TOP + 8), label, anchor="end" if is_late else "start")


def _split_runs(paper: SeriesCanvas, places: Sequence[SeriesPoint]) -> list[list[Point]]:
    """Values that follow each other without a gap."""
    runs: list[list[Point]] = [[]]
    for x, place in zip(paper.across, places, strict=True):
        if place.value is None:
            runs.append([])
        else:
            runs[-1].append((x, paper.up(place.value)))
    return [run for run in runs if run]
