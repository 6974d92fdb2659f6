"""Drawing primitives: shapes to SVG text, all of it escaped; scales, round ticks and axes."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

MIN_SPAN = 1e-9  # relative to the values; a smaller span has no distinct ticks
NumberFormatter = Callable[[float], str]
Point = tuple[float, float]


class Svg(str):
    """Finished SVG. Only `Drawing` makes it, from numbers and escaped text, so a template may print it unescaped."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


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


class Drawing:
    """Collects shapes. With a style sheet, the result is a file of its own: it embeds the sheet and has a size and a
    white background."""

    def __init__(self, width: float, height: float, name: str, css: str = "", *, style: str = "") -> None:
        size = _format_coordinate(width), _format_coordinate(height)
        self._head = f'<svg{_class(css)} viewBox="0 0 {" ".join(size)}" role="img" aria-label={_quoted(name)}'
        self._shapes: list[str] = []
        if style:
            self._head += f' xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}"'
            self._shapes.append(f'<style>{escape(style)}</style><rect width="100%" height="100%" fill="#fff"/>')

    def line(self, points: Iterable[Point], css: str) -> None:
        self._shapes.append(f'<path{_class(css)} d="{_path(points)}"/>')

    def area(self, upper: Sequence[Point], lower: Sequence[Point], css: str) -> None:
        self._shapes.append(f'<path{_class(css)} d="{_path([*upper, *reversed(lower)])}Z"/>')

    def dot(self, at: Point, css: str = "d1", radius: float = 3) -> None:
        self._shapes.append(f"<circle{_class(css)}{_numbers(cx=at[0], cy=at[1], r=radius)}/>")

    def interval(
        self,
        along: AxisScale,
        y: float,
        value: float | None,
        low: float | None,
        high: float | None,
        *,
        css: str = "d1",
        radius: float = 4,
    ) -> None:
        """Draw a horizontal interval and a dot for its value, at the edges of the scale if they are out of range."""
        if low is not None and high is not None:
            self.line([(along.clamp(low), y), (along.clamp(high), y)], "range")
        if value is not None:
            self.dot((along.clamp(value), y), css, radius)

    def box(self, x: float, y: float, width: float, height: float, css: str = "") -> None:
        size = _numbers(x=x, y=y, width=max(width, 0), height=max(height, 0))
        self._shapes.append(f"<rect{_class(css)}{size}/>")

    def text(self, at: Point, text: str, css: str = "", anchor: str = "start") -> None:
        place = _numbers(x=at[0], y=at[1])
        self._shapes.append(f'<text{_class(css)}{place} text-anchor="{anchor}">{escape(text)}</text>')

    def to_svg(self) -> Svg:
        return Svg(f"{self._head}>{''.join(self._shapes)}</svg>")


def choose_ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Choose round numbers from at most `low` to at least `high`, in about `about` steps."""
    if not math.isfinite(low) or not math.isfinite(high) or high - low < MIN_SPAN * max(1.0, abs(low)):
        high = low + 1
    rough = (high - low) / about
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * magnitude for factor in (1, 2, 2.5, 5, 10) if factor * magnitude >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def draw_value_axis(
    drawing: Drawing,
    low: float,
    high: float,
    *,
    floor: float,
    top: float,
    right: float,
    reads: NumberFormatter,
    left: float | None = None,
    about: int = 4,
) -> tuple[AxisScale, float]:
    """Draw gridlines at round values, which are written on the left. The lowest line is the axis.

    Return the vertical scale and the left edge, which by default leaves room for the longest value."""
    ticks = choose_ticks(low, high, about)
    up = AxisScale(ticks[0], ticks[-1], floor, top)
    left = 10 + 6.2 * max(len(reads(value)) for value in ticks) if left is None else left
    for value in ticks:
        drawing.line([(left, up(value)), (right, up(value))], "axis-l" if value == ticks[0] else "grid-l")
        drawing.text((left - 6, up(value) + 3.5), reads(value), anchor="end")
    return up, left


def draw_axis_labels(
    drawing: Drawing, places: Sequence[float], labels: Sequence[str], y: float, at_most: int = 5
) -> None:
    """Draw labels below the axis, leaving some out so that they do not overlap. The last one is always kept."""
    every = max(1, math.ceil(len(labels) / at_most))
    for n, (x, label) in enumerate(zip(places, labels, strict=True)):
        if (len(labels) - 1 - n) % every == 0:
            drawing.text((x, y), label, anchor="middle")


def _path(points: Iterable[Point]) -> str:
    return "M" + "L".join(f"{_format_coordinate(x)} {_format_coordinate(y)}" for x, y in points)


def _class(css: str) -> str:
    return f" class={_quoted(css)}" if css else ""


def _numbers(**attributes: float) -> str:
    return "".join(f' {name}="{_format_coordinate(number)}"' for name, number in attributes.items())


def _quoted(text: str) -> str:
    return quoteattr(text, {'"': "&quot;"})


def _format_coordinate(number: float) -> str:
    return f"{round(number, 1):g}"
