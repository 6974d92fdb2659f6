"""Lay out the columns of a day, one for each hour. The template draws them: its texts are translated."""

from collections.abc import Sequence
from typing import NamedTuple

WIDTH = 280
_TOP, _FLOOR = 16, 80  # the number is written above a column, the hour below it
_LABEL_WIDTH = 28  # with narrower columns, only every second or third hour is labeled


class HourCount(NamedTuple):
    hour: int
    n_steps: int
    is_now: bool


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
    most, slot = max(hour.n_steps for hour in hours) or 1, WIDTH / len(hours)
    every = -(-_LABEL_WIDTH * len(hours) // WIDTH)
    return [_layout_bar(hour, n, slot, most, every) for n, hour in enumerate(hours)]


def _layout_bar(hour: HourCount, n: int, slot: float, most: int, every: int) -> HourBar:
    height = round((_FLOOR - _TOP) * hour.n_steps / most)
    if hour.n_steps:
        height = max(2, height)  # keep small counts visible
    width = round(slot * 0.62)
    middle = round(slot * (n + 0.5))
    return HourBar(hour, middle - width // 2, _FLOOR - height, width, height, middle, has_label=n % every == 0)
