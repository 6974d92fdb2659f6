"""Bar charts: columns over time or over the hours of a day, stacked columns, horizontal bars."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from charts.svg import AxisScale, Drawing, NumberFormatter, Svg, draw_axis_labels, draw_value_axis

WIDTH, WIDE = 372.0, 560.0
HOURS_WIDTH = 280


@dataclass(frozen=True)
class BarValue:
    label: str
    value: float
    note: str = ""


def draw_columns(bars: Sequence[BarValue], *, name: str, reads: NumberFormatter, width: float = WIDE) -> Svg:
    """Draw one column per value. The last one is highlighted and shows its value."""
    drawing, right = Drawing(width, 118, name), width - 52
    most = max([bar.value for bar in bars] or [1]) or 1
    up, left = draw_value_axis(drawing, 0, most, floor=98, top=8, right=right, reads=reads, about=2)
    step = (right - left) / max(len(bars), 1)
    for n, bar in enumerate(bars):
        is_last = n == len(bars) - 1
        x, y = left + n * step, up(bar.value)
        drawing.box(x + step * 0.18, y, step * 0.64, up(0) - y, "f1" if is_last else "f3")
        if is_last:
            drawing.text((x + step, y + 4), reads(bar.value), "t")
    _label_columns(drawing, [bar.label for bar in bars], left, step, 113)
    return drawing.to_svg()


def _label_columns(
    drawing: Drawing, labels: Sequence[str], left: float, step: float, y: float, at_most: int = 5
) -> None:
    draw_axis_labels(drawing, [left + (n + 0.5) * step for n in range(len(labels))], labels, y, at_most)


def draw_hours(steps_by_hour: Mapping[int, int], *, now: int, name: str) -> Svg:
    """Draw one column per hour, with its number of steps above it and the hour below it."""
    top, floor, label_width = 16, 80, 28
    drawing = Drawing(HOURS_WIDTH, 96, name)
    drawing.line([(0, floor + 0.5), (HOURS_WIDTH, floor + 0.5)], "hours__floor")
    most, slot = max(steps_by_hour.values()) or 1, HOURS_WIDTH / len(steps_by_hour)
    every = -(-label_width * len(steps_by_hour) // HOURS_WIDTH)  # narrow columns are not all labeled
    for n, (hour, steps) in enumerate(steps_by_hour.items()):
        width, middle = round(slot * 0.62), round(slot * (n + 0.5))
        height = max(2, round((floor - top) * steps / most)) if steps else 0  # small counts stay visible
        drawing.box(middle - width // 2, floor - height, width, height, "is-now" if hour == now else "")
        if steps:
            drawing.text((middle, floor - height - 4), str(steps), "hours__count", "middle")
        if n % every == 0:
            drawing.text((middle, 93), str(hour), anchor="middle")
    return drawing.to_svg()


@dataclass(frozen=True)
class StackLayer:
    """One layer of stacked columns: its CSS class, label, share per column, and note beside the last column."""

    css: str
    label: str
    shares: Sequence[float]
    note: str


def draw_stacked_columns(
    labels: Sequence[str], layers: Sequence[StackLayer], *, name: str, reads: NumberFormatter, rest: tuple[str, str]
) -> Svg:
    """Stack the shares from the first layer up. The rest is labeled, not drawn."""
    height, right = 164.0, WIDTH - 84
    drawing = Drawing(WIDTH, height, name)
    most = max([sum(layer.shares[n] for layer in layers) for n in range(len(labels))] + [0.01])
    up, left = draw_value_axis(drawing, 0, most, floor=height - 22, top=10, right=right, reads=reads)
    step = (right - left) / max(len(labels), 1)
    for n in range(len(labels)):
        base = 0.0
        for layer in layers:
            top = base + layer.shares[n]
            drawing.box(left + n * step + step * 0.15, up(top) + 1, step * 0.7, up(base) - up(top) - 1, layer.css)
            base = top
    _name_layers(drawing, layers, up, right + 6, rest)
    _label_columns(drawing, labels, left, step, height - 7, at_most=4)
    return drawing.to_svg()


def _name_layers(
    drawing: Drawing, layers: Sequence[StackLayer], up: AxisScale, x: float, rest: tuple[str, str]
) -> None:
    """Label the layers beside the last column, without overlap."""
    base, ceiling = 0.0, up(0) + 26
    for layer in layers:
        share = layer.shares[-1] if layer.shares else 0.0
        y = min(up(base + share / 2), ceiling - 28)
        drawing.text((x, y), layer.label, "t2")
        drawing.text((x, y + 13), layer.note)
        base, ceiling = base + share, y
    drawing.text((x, min(10.0, ceiling - 28)), rest[0], "t2")
    drawing.text((x, min(10.0, ceiling - 28) + 13), rest[1])


def draw_horizontal_bars(bars: Sequence[BarValue], *, name: str, reads: NumberFormatter, width: float = WIDE) -> Svg:
    """Draw horizontal bars with the name on the left and the value on the right."""
    drawing = Drawing(width, max(28 * len(bars) + 6, 20), name)
    most, room = max([bar.value for bar in bars] or [1]) or 1, min(250.0, width - 112 - 130)
    for n, bar in enumerate(bars):
        y, length = 9 + 28 * n, room * bar.value / most
        drawing.text((0, y + 11), bar.label, "t2")
        drawing.box(112, y, max(length, 1), 15, "f1" if n == 0 else "f2")
        drawing.text((118 + length, y + 11), reads(bar.value), "t")
        drawing.text((width, y + 11), bar.note, anchor="end")
    return drawing.to_svg()
