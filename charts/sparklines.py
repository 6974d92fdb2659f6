"""Small drawings for table cells."""

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
    """Draw a dot on its interval, highlighted if the whole interval is below the mark."""
    is_low = mark is not None and (value if high is None else high) < mark
    drawing = Drawing(
        WIDTH,
        HEIGHT,
        f"{name}: {number_format.format_share(value)} {number_format.format_interval(low, high)}".strip(),
        "ci ci--bad" if is_low else "ci",
    )
    scale = AxisScale(*of, 0, WIDTH)
    drawing.line([(0, 8), (WIDTH, 8)], "grid-l")
    if mark is not None:
        drawing.line([(scale.clamp(mark), 1), (scale.clamp(mark), 15)], "ref")
    if low is not None and high is not None:
        drawing.line([(scale.clamp(low), 8), (scale.clamp(high), 8)], "range")
    drawing.dot((scale.clamp(value), 8), radius=3.2)
    return drawing.to_svg()


def draw_bar_sparkline(values: Sequence[float], *, name: str) -> Svg:
    """Draw one bar per day. An empty day is a thin line."""
    drawing = Drawing(60, 20, name, "spark")
    most, step = max([*values, 1]), 60 / max(len(values), 1)
    for n, value in enumerate(values):
        height = max(18 * value / most, 1)
        drawing.box(n * step, 20 - height, step - 1, height)
    return drawing.to_svg()


def draw_line_sparkline(values: Sequence[float | None], *, name: str) -> Svg:
    """Draw a line through the known values with a dot at the last one."""
    drawing = Drawing(60, 20, name, "spark")
    known = [(n, value) for n, value in enumerate(values) if value is not None]
    if known:
        across = AxisScale(0, max(len(values) - 1, 1), 2, 56)
        up = AxisScale(min(value for _, value in known), max(value for _, value in known), 17, 3)
        points = [(across(n), up(value)) for n, value in known]
        if len(points) > 1:
            drawing.line(points, "")
        drawing.dot(points[-1], radius=1.8)
    return drawing.to_svg()
