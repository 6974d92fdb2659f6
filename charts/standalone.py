"""Charts as SVG files with an embedded style sheet: a dataset card is shown where our style sheets are not available.

Every number that is drawn is also written next to it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from charts.svg import AxisScale, Drawing, Svg

_WIDTH, _ROW_HEIGHT, _LEFT, _RIGHT = 500, 24, 180, 300
_SHARE_SCALE = AxisScale(0, 1, _LEFT, _RIGHT)
_MAX_TEXT_LENGTH = 30
_STYLE = (
    "text{font:13px sans-serif;fill:#16191d}.tick{fill:#5a6270}.bar{fill:#3f5f8a}.track{fill:#d5d9e0;opacity:.4}"
    ".dark{fill:#16191d}.negative{fill:#b3372f}.neutral{fill:#8a919e}.positive{fill:#2c7a51}"
    ".axis{stroke:#d5d9e0}.range{stroke:#5a6270;stroke-width:3}"
)


class ShareBar(NamedTuple):
    label: str
    share: float  # of the full width
    note: str
    css: str = "bar"


class ShareInterval(NamedTuple):
    label: str
    note: str
    value: float | None
    low: float | None
    high: float | None


def draw_share_bars(name: str, rows: Sequence[ShareBar]) -> Svg:
    drawing = Drawing(_WIDTH, _ROW_HEIGHT * len(rows) + 8, name, style=_STYLE)
    for number, row in enumerate(rows):
        y = _ROW_HEIGHT * number + 6
        drawing.text((0, y + 13), _shorten(row.label))
        drawing.box(_LEFT, y, _RIGHT - _LEFT, 14, "track")
        drawing.box(_LEFT, y, _SHARE_SCALE.clamp(row.share) - _LEFT, 14, row.css)
        drawing.text((_RIGHT + 12, y + 13), _shorten(row.note))
    return drawing.to_svg()


def draw_share_intervals(name: str, rows: Sequence[ShareInterval]) -> Svg:
    """Draw values on an axis from 0 to 1. Values outside are drawn at its ends."""
    foot = _ROW_HEIGHT * len(rows) + 18
    drawing = Drawing(_WIDTH, foot + 8, name, style=_STYLE)
    for number, row in enumerate(rows):
        y = _ROW_HEIGHT * number + 16
        drawing.text((0, y + 4), _shorten(row.label))
        drawing.line([(_LEFT, y), (_RIGHT, y)], "axis")
        drawing.text((_RIGHT + 12, y + 4), _shorten(row.note))
        drawing.interval(_SHARE_SCALE, y, row.value, row.low, row.high, css="dark")
    for tick in (0, 0.5, 1):
        drawing.text((_SHARE_SCALE(tick), foot), f"{tick:g}", "tick", anchor="middle")
    return drawing.to_svg()


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_TEXT_LENGTH else f"{text[: _MAX_TEXT_LENGTH - 1]}…"
