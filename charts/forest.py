"""Several statistics on one axis, each a dot on its interval; names and figures stand beside it as text."""

from collections.abc import Sequence
from dataclasses import dataclass

from charts.scales import AxisScale
from charts.svg import Drawing, Svg

ROW_HEIGHT = 30.0  # as high as a row of the table beside it
MAX_TICKS = 12  # tenths that can be told apart; of more every second one is named, the end among them


@dataclass(frozen=True)
class ForestRow:
    value: float | None
    low: float | None
    high: float | None
    mark: float | None = None


def choose_axis_range(low: float, high: float) -> tuple[float, float]:
    """The part of the axis that is shown: down to where something lies, in tenths."""
    return max(-1.0, min(int(low * 10 - (1 if low < 0 else 0)) / 10, high - 0.1)), high


def draw_forest(lines: Sequence[ForestRow], *, name: str, of: tuple[float, float], width: float = 360.0) -> Svg:
    drawing = Drawing(width, ROW_HEIGHT * len(lines) + 22, name, "forest")
    along = AxisScale(*of, 12, width - 12)
    tenths = round((of[1] - of[0]) * 10)
    for n in range(tenths % 2 if tenths > MAX_TICKS else 0, tenths + 1, 2 if tenths > MAX_TICKS else 1):
        tenth = of[0] + n / 10
        drawing.line([(along(tenth), 18), (along(tenth), ROW_HEIGHT * len(lines) + 20)], "grid-l")
        drawing.word((along(tenth), 11), _format_tenth(tenth), anchor="middle")
    for n, line in enumerate(lines):
        y = 22 + ROW_HEIGHT * (n + 0.5)
        if line.mark is not None:
            drawing.line([(along.held(line.mark), y - 10), (along.held(line.mark), y + 10)], "ref")
        if line.low is not None and line.high is not None:
            drawing.line([(along.held(line.low), y), (along.held(line.high), y)], "range")
        if line.value is not None:
            drawing.dot((along.held(line.value), y), radius=4)
    return drawing.done()


def _format_tenth(value: float) -> str:
    text = f"{abs(value):.1f}"
    return ("−" if value < -0.001 else "") + (text[1:] if text.startswith("0.") else text)
