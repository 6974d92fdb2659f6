"""Bar charts: columns over time, stacked columns, horizontal bars."""

from collections.abc import Sequence
from dataclasses import dataclass

from charts.scales import AxisScale, NumberFormatter, choose_ticks, draw_axis_labels, draw_gridlines
from charts.svg import Drawing, Svg

WIDTH, WIDE = 372.0, 560.0


@dataclass(frozen=True)
class BarValue:
    label: str
    value: float
    note: str = ""


def draw_columns(
    bars: Sequence[BarValue], *, name: str, reads: NumberFormatter, width: float = WIDE, height: float = 118.0
) -> Svg:
    """Draw one column per value. The last one is highlighted and shows its value."""
    drawing = Drawing(width, height, name)
    at = choose_ticks(0, max([bar.value for bar in bars] or [1]) or 1, about=2)
    left, right = 10 + 6.2 * max(len(reads(value)) for value in at), width - 52
    up = AxisScale(0, at[-1], height - 20, 8)
    draw_gridlines(drawing, up, at, left, right, reads)
    step = (right - left) / max(len(bars), 1)
    for n, bar in enumerate(bars):
        is_last = n == len(bars) - 1
        drawing.box(
            left + n * step + step * 0.18, up(bar.value), step * 0.64, up(0) - up(bar.value), "f1" if is_last else "f3"
        )
        if is_last:
            drawing.text((left + (n + 1) * step, up(bar.value) + 4), reads(bar.value), "t")
    centers = [left + (n + 0.5) * step for n in range(len(bars))]
    draw_axis_labels(drawing, centers, [bar.label for bar in bars], height - 5)
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
    totals = [sum(layer.shares[n] for layer in layers) for n in range(len(labels))]
    at = choose_ticks(0, max([*totals, 0.01]))
    left = 10 + 6.2 * max(len(reads(value)) for value in at)
    up = AxisScale(0, at[-1], height - 22, 10)
    draw_gridlines(drawing, up, at, left, right, reads)
    step = (right - left) / max(len(labels), 1)
    for n in range(len(labels)):
        base = 0.0
        for layer in layers:
            top = base + layer.shares[n]
            drawing.box(left + n * step + step * 0.15, up(top) + 1, step * 0.7, up(base) - up(top) - 1, layer.css)
            base = top
    _name_layers(drawing, layers, up, right + 6, rest)
    draw_axis_labels(drawing, [left + (n + 0.5) * step for n in range(len(labels))], labels, height - 7, at_most=4)
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
