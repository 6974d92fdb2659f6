"""Numbers as text."""

import math
from dataclasses import dataclass


def format_share(value: float | None) -> str:
    """Format a share: 0.68, 1.00, −0.12; a dash for None."""
    if value is None or not math.isfinite(value):
        return "–"
    text = f"{abs(value):.2f}"
    return f"−{text}" if value < 0 and text != "0.00" else text


def format_interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{format_share(low)}, {format_share(high)}]"


@dataclass(frozen=True)
class ValueWithInterval:
    """A value with its interval, formatted."""

    value: float | None
    low: float | None
    high: float | None

    @property
    def shown(self) -> str:
        return format_share(self.value)

    @property
    def interval(self) -> str:
        return format_interval(self.low, self.high)


def format_percent(value: float | None) -> str:
    """Format a share as a percentage: 3.9%, and 78% from ten up."""
    if value is None:
        return "–"
    return f"{value * 100:.1f}%" if value < 0.1 else f"{value * 100:.0f}%"


def format_count(value: float) -> str:
    return f"{value:,.0f}"
