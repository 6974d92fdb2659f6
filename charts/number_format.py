"""Numbers as they are written here: a share without its nought, its interval in brackets."""

import math
from dataclasses import dataclass


def format_share(value: float | None) -> str:
    """ ".68", "1.00", "−.12"; a dash for what is not known."""
    if value is None or not math.isfinite(value):
        return "–"
    text = f"{abs(value):.2f}"
    sign = "−" if value < 0 and text != "0.00" else ""
    return sign + (text[1:] if text.startswith("0.") else text)


def format_interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{format_share(low)}, {format_share(high)}]"


@dataclass(frozen=True)
class ValueWithInterval:
    """A value with its interval, as it is written."""

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
    """ "3.9 %", "78 %" from ten up."""
    if value is None:
        return "–"
    return f"{value * 100:.1f} %" if value < 0.1 else f"{value * 100:.0f} %"


def format_count(value: float) -> str:
    return f"{value:,.0f}"
