"""Where the bars of a day stand in their picture. Pure: whole numbers, in the units of the picture."""

from collections.abc import Sequence
from typing import NamedTuple

from annotate.work_summary import HourCount

WIDTH = 280
_TOP, _FLOOR = 16, 80  # what a bar may fill; its number stands above, its hour below
_ROOM = 28  # for the name of an hour: where hours are narrower, every second or third has its name


class HourBar(NamedTuple):
    hour: HourCount
    x: int
    y: int
    width: int
    height: int
    middle: int
    has_name: bool


def layout_bars(hours: Sequence[HourCount]) -> list[HourBar]:
    if not hours:
        return []
    most, slot = max(hour.n_steps for hour in hours) or 1, WIDTH / len(hours)
    every = -(-_ROOM * len(hours) // WIDTH)
    return [_layout_bar(hour, n, slot, most, every) for n, hour in enumerate(hours)]


def _layout_bar(hour: HourCount, n: int, slot: float, most: int, every: int) -> HourBar:
    height = round((_FLOOR - _TOP) * hour.n_steps / most)
    if hour.n_steps:
        height = max(2, height)  # a little is not nothing
    width = round(slot * 0.62)
    middle = round(slot * (n + 0.5))
    return HourBar(hour, middle - width // 2, _FLOOR - height, width, height, middle, has_name=n % every == 0)
