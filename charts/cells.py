"""Drawings in tables: intervals, sparklines, shaded cells, and the forest plot beside a table."""

from collections.abc import Sequence
from dataclasses import dataclass

from charts.number_format import format_interval, format_share
from charts.svg import AxisScale, Drawing, Svg

WIDTH = 96.0
FOREST_WIDTH = 240.0
FOREST_ROW_HEIGHT = 40.0  # height of a row in the table beside it
MAX_FOREST_TICKS = 10  # with more tenths, only every second one is labeled
_SHADES = 7


def draw_interval(
    value: float,
    low: float | None,
    high: float | None,
    *,
    name: str,
    mark: float | None = None,
) -> Svg:
    """Draw a dot on its interval within 0 and 1, highlighted if the whole interval is below the mark."""
    is_low = mark is not None and (value if high is None else high) < mark
    label = f"{name}: {format_share(value)} {format_interval(low, high)}".strip()
    drawing, along = Drawing(WIDTH, 16, label, "ci ci--bad" if is_low else "ci"), AxisScale(0, 1, 0, WIDTH)
    drawing.line([(0, 8), (WIDTH, 8)], "grid-l")
    if mark is not None:
        drawing.line([(along.clamp(mark), 1), (along.clamp(mark), 15)], "ref")
    drawing.interval(along, 8, value, low, high, radius=3.2)
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


@dataclass(frozen=True)
class MatrixCell:
    """A cell: its text, small text below, and shade. The default is an empty cell."""

    big: str = ""
    small: str = ""
    css: str = "hx"


@dataclass(frozen=True)
class Matrix:
    name: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[MatrixCell]]]


def get_shade_class(share: float, low: float = 0.0, high: float = 1.0) -> str:
    """Return the shade of a share, from h0 (lightest) to h6 (darkest)."""
    position = (share - low) / (high - low) if high > low else 1.0
    return f"h{min(max(int(position * _SHADES), 0), _SHADES - 1)}"


def build_share_cell(share: float | None, n: int, *, low: float = 0.0, high: float = 1.0) -> MatrixCell:
    """Build a cell with a share and its n below."""
    if share is None:
        return MatrixCell()
    return MatrixCell(format_share(share), f"{n:,}", get_shade_class(share, low, high))


def build_count_cell(n: int, share: float) -> MatrixCell:
    """Build a cell with a count and its share of the row below."""
    return MatrixCell(f"{n:,}", format_share(share), get_shade_class(share))


@dataclass(frozen=True)
class ForestRow:
    value: float | None
    low: float | None
    high: float | None
    mark: float | None = None


def choose_axis_range(low: float, high: float) -> tuple[float, float]:
    """Choose the range of a forest plot in tenths, so that it includes the lowest value."""
    return max(-1.0, min(int(low * 10 - (1 if low < 0 else 0)) / 10, high - 0.1)), high


def draw_forest(rows: Sequence[ForestRow], *, name: str, of: tuple[float, float]) -> Svg:
    """Draw several statistics on one axis, each as a dot on its interval."""
    floor = FOREST_ROW_HEIGHT * len(rows) + 20
    drawing, along = Drawing(FOREST_WIDTH, floor + 2, name, "forest"), AxisScale(*of, 12, FOREST_WIDTH - 12)
    tenths = round((of[1] - of[0]) * 10)
    every = 2 if tenths > MAX_FOREST_TICKS else 1
    for n in range(tenths % every, tenths + 1, every):
        x = along(of[0] + n / 10)
        drawing.line([(x, 18), (x, floor)], "grid-l")
        drawing.text((x, 11), _format_tenth(of[0] + n / 10), anchor="middle")
    for n, row in enumerate(rows):
        y = 22 + FOREST_ROW_HEIGHT * (n + 0.5)
        if row.mark is not None:
            drawing.line([(along.clamp(row.mark), y - 10), (along.clamp(row.mark), y + 10)], "ref")
        drawing.interval(along, y, row.value, row.low, row.high)
    return drawing.to_svg()


def _format_tenth(value: float) -> str:
    return ("−" if value < -0.001 else "") + f"{abs(value):.1f}"
