"""Several statistics on one axis, each a dot on its interval; names and figures stand beside it as text."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.charts.drawing import Drawing, Svg
from dashboard.charts.scales import Scale

ROW = 30.0  # as high as a row of the table beside it
MOST = 12  # tenths that can be told apart; of more every second one is named, the end among them


@dataclass(frozen=True)
class Line:
    value: float | None
    low: float | None
    high: float | None
    mark: float | None = None


def axis(low: float, high: float) -> tuple[float, float]:
    """The part of the axis that is shown: down to where something lies, in tenths."""
    return max(-1.0, min(int(low * 10 - (1 if low < 0 else 0)) / 10, high - 0.1)), high


def draw(lines: Sequence[Line], *, name: str, of: tuple[float, float], width: float = 360.0) -> Svg:
    drawing = Drawing(width, ROW * len(lines) + 22, name, "forest")
    along = Scale(*of, 12, width - 12)
    tenths = round((of[1] - of[0]) * 10)
    for n in range(tenths % 2 if tenths > MOST else 0, tenths + 1, 2 if tenths > MOST else 1):
        tenth = of[0] + n / 10
        drawing.line([(along(tenth), 18), (along(tenth), ROW * len(lines) + 20)], "grid-l")
        drawing.word((along(tenth), 11), _tenth(tenth), anchor="middle")
    for n, line in enumerate(lines):
        y = 22 + ROW * (n + 0.5)
        if line.mark is not None:
            drawing.line([(along.held(line.mark), y - 10), (along.held(line.mark), y + 10)], "ref")
        if line.low is not None and line.high is not None:
            drawing.line([(along.held(line.low), y), (along.held(line.high), y)], "range")
        if line.value is not None:
            drawing.dot((along.held(line.value), y), radius=4)
    return drawing.done()


def _tenth(value: float) -> str:
    text = f"{abs(value):.1f}"
    return ("−" if value < -0.001 else "") + (text[1:] if text.startswith("0.") else text)
