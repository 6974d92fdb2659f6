"""Drawings that stand in a line of a table."""

from collections.abc import Sequence

from charts import number_format
from charts.scales import AxisScale
from charts.svg import Drawing, Svg

WIDTH, HEIGHT = 96.0, 16.0


def draw_interval(
    value: float,
    low: float | None,
    high: float | None,
    *,
    name: str,
    of: tuple[float, float] = (0.0, 1.0),
    mark: float | None = None,
) -> Svg:
    """A dot on its range; amber when the whole range lies below the mark that it should reach."""
    is_low = mark is not None and (value if high is None else high) < mark
    drawing = Drawing(
        WIDTH,
        HEIGHT,
        f"{name}: {number_format.format_share(value)} {number_format.format_interval(low, high)}".strip(),
        _get_css_class(is_low),
    )
    scale = AxisScale(*of, 0, WIDTH)
    drawing.line([(0, 8), (WIDTH, 8)], "grid-l")
    if mark is not None:
        drawing.line([(scale.held(mark), 1), (scale.held(mark), 15)], "ref")
    if low is not None and high is not None:
        drawing.line([(scale.held(low), 8), (scale.held(high), 8)], "range")
    drawing.dot((scale.held(value), 8), radius=3.2)
    return drawing.done()


def _get_css_class(is_low: bool) -> str:
    return "ci ci--bad" if is_low else "ci"


def draw_bar_sparkline(values: Sequence[float], *, name: str) -> Svg:
    """One bar a day; a day without anything is a hairline."""
    drawing = Drawing(60, 20, name, "spark")
    most, step = max([*values, 1]), 60 / max(len(values), 1)
    for n, value in enumerate(values):
        height = max(18 * value / most, 1)
        drawing.box(n * step, 20 - height, step - 1, height)
    return drawing.done()


def draw_line_sparkline(values: Sequence[float | None], *, name: str) -> Svg:
    """A run of values, days without one left out; the last carries a dot."""
    drawing = Drawing(60, 20, name, "spark")
    known = [(n, value) for n, value in enumerate(values) if value is not None]
    if known:
        across = AxisScale(0, max(len(values) - 1, 1), 2, 56)
        up = AxisScale(min(value for _, value in known), max(value for _, value in known), 17, 3)
        points = [(across(n), up(value)) for n, value in known]
        if len(points) > 1:
            drawing.line(points, "")
        drawing.dot(points[-1], radius=1.8)
    return drawing.done()
