"""Forest plot: several statistics on one axis, each a dot on its interval, beside a table of names and values."""

from collections.abc import Sequence
from dataclasses import dataclass

from charts.scales import AxisScale
from charts.svg import Drawing, Svg

ROW_HEIGHT = 30.0  # height of a row in the table beside it
MAX_TICKS = 12  # with more tenths, only every second one is labeled


@dataclass(frozen=True)
class ForestRow:
    value: float | None
    low: float | None
    high: float | None
    mark: float | None = None


def choose_axis_range(low: float, high: float) -> tuple[float, float]:
    """Choose the range of the axis in tenths, so that it includes the lowest value."""
    return max(-1.0, min(int(low * 10 - (1 if low < 0 else 0)) / 10, high - 0.1)), high


def draw_forest(rows: Sequence[ForestRow], *, name: str, of: tuple[float, float], width: float = 360.0) -> Svg:
    drawing = Drawing(width, ROW_HEIGHT * len(rows) + 22, name, "forest")
    along = AxisScale(*of, 12, width - 12)
    tenths = round((of[1] - of[0]) * 10)
    for n in range(tenths % 2 if tenths > MAX_TICKS else 0, tenths + 1, 2 if tenths > MAX_TICKS else 1):
        tenth = of[0] + n / 10
        drawing.line([(along(tenth), 18), (along(tenth), ROW_HEIGHT * len(rows) + 20)], "grid-l")
        drawing.text((along(tenth), 11), _format_tenth(tenth), anchor="middle")
    for n, row in enumerate(rows):
        y = 22 + ROW_HEIGHT * (n + 0.5)
        if row.mark is not None:
            drawing.line([(along.clamp(row.mark), y - 10), (along.clamp(row.mark), y + 10)], "ref")
        if row.low is not None and row.high is not None:
            drawing.line([(along.clamp(row.low), y), (along.clamp(row.high), y)], "range")
        if row.value is not None:
            drawing.dot((along.clamp(row.value), y), radius=4)
    return drawing.to_svg()


def _format_tenth(value: float) -> str:
    return ("−" if value < -0.001 else "") + f"{abs(value):.1f}"
