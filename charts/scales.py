"""Map values to coordinates, and choose round axis ticks."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from charts.svg import Drawing

MIN_SPAN = 1e-9  # relative to the values; a smaller span has no distinct ticks
NumberFormatter = Callable[[float], str]


@dataclass(frozen=True)
class AxisScale:
    """Map values from `low` to `high` onto coordinates from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low
        return self.start + (self.end - self.start) * ((value - self.low) / span if span else 0.5)

    def clamp(self, value: float) -> float:
        """Map a value, moving it to the nearest edge if it is out of range."""
        return self(min(max(value, self.low), self.high))


def choose_ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Choose round numbers from at most `low` to at least `high`, in about `about` steps."""
    if not math.isfinite(low) or not math.isfinite(high) or high - low < MIN_SPAN * max(1.0, abs(low)):
        high = low + 1
    step = _round_step((high - low) / about)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def _round_step(rough: float) -> float:
    magnitude = 10.0 ** math.floor(math.log10(rough))
    return next(factor * magnitude for factor in (1, 2, 2.5, 5, 10) if factor * magnitude >= rough * 0.999)


def draw_gridlines(
    drawing: Drawing, scale: AxisScale, at: Sequence[float], left: float, right: float, reads: NumberFormatter
) -> None:
    """Draw horizontal lines with their values on the left. The lowest line is the axis."""
    for value in at:
        y = scale(value)
        drawing.line([(left, y), (right, y)], "axis-l" if value == at[0] else "grid-l")
        drawing.text((left - 6, y + 3.5), reads(value), anchor="end")


def draw_axis_labels(
    drawing: Drawing, places: Sequence[float], labels: Sequence[str], y: float, at_most: int = 5
) -> None:
    """Draw labels below the axis, leaving some out so that they do not overlap. The last one is always kept."""
    every = max(1, math.ceil(len(labels) / at_most))
    for n, (x, label) in enumerate(zip(places, labels, strict=True)):
        if (len(labels) - 1 - n) % every == 0:
            drawing.text((x, y), label, anchor="middle")
