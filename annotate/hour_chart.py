"""Lay out the bars of today's chart, in whole SVG units. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from annotate.work_summary import HourCount

WIDTH = 280
_TOP, _BASELINE = 16, 80  # vertical extent of the bars; counts are above, hours below
_LABEL_WIDTH = 28  # if hours are narrower than this, only every second or third is labeled


class HourBar(NamedTuple):
    hour: HourCount
    x: int
    y: int
    width: int
    height: int
    middle: int
    has_label: bool


def layout_bars(hours: Sequence[HourCount]) -> list[HourBar]:
    if not hours:
        return []
    highest, pitch = max(hour.n_steps for hour in hours) or 1, WIDTH / len(hours)
    label_every = -(-_LABEL_WIDTH * len(hours) // WIDTH)
    width = round(pitch * 0.62)
    bars = []
    for n, hour in enumerate(hours):
        height = round((_BASELINE - _TOP) * hour.n_steps / highest)
        if hour.n_steps:
            height = max(2, height)  # keep small counts visible
        middle = round(pitch * (n + 0.5))
        x, y = middle - width // 2, _BASELINE - height
        bars.append(HourBar(hour, x, y, width, height, middle, has_label=n % label_every == 0))
    return bars
