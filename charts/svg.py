"""The drawing primitives: shapes to SVG text. All text is escaped."""

from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape, quoteattr

Point = tuple[float, float]


class Svg(str):
    """Finished SVG. Only `Drawing` makes it, from numbers and escaped text, so a template may print it unescaped."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


class Drawing:
    """Collects shapes. With a style sheet, the result is a file of its own: it embeds the sheet and has a size and a
    white background."""

    def __init__(self, width: float, height: float, name: str, css: str = "", *, style: str = "") -> None:
        size = f"{_format_coordinate(width)} {_format_coordinate(height)}".split()
        self._head = f'<svg{_attributes(css)} viewBox="0 0 {" ".join(size)}" role="img" aria-label={_quoted(name)}'
        self._shapes: list[str] = []
        if style:
            self._head += f' xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}"'
            self._shapes.append(f'<style>{escape(style)}</style><rect width="100%" height="100%" fill="#fff"/>')

    def line(self, points: Iterable[Point], css: str) -> None:
        self._shapes.append(f'<path{_attributes(css)} d="{_path(points)}"/>')

    def area(self, upper: Sequence[Point], lower: Sequence[Point], css: str) -> None:
        self._shapes.append(f'<path{_attributes(css)} d="{_path([*upper, *reversed(lower)])}Z"/>')

    def dot(self, at: Point, css: str = "d1", radius: float = 3) -> None:
        x, y = _format_coordinate(at[0]), _format_coordinate(at[1])
        self._shapes.append(f'<circle{_attributes(css)} cx="{x}" cy="{y}" r="{_format_coordinate(radius)}"/>')

    def box(self, x: float, y: float, width: float, height: float, css: str = "") -> None:
        size = f'width="{_format_coordinate(max(width, 0))}" height="{_format_coordinate(max(height, 0))}"'
        self._shapes.append(f'<rect{_attributes(css)} x="{_format_coordinate(x)}" y="{_format_coordinate(y)}" {size}/>')

    def text(self, at: Point, text: str, css: str = "", anchor: str = "start") -> None:
        place = f'x="{_format_coordinate(at[0])}" y="{_format_coordinate(at[1])}" text-anchor="{anchor}"'
        self._shapes.append(f"<text{_attributes(css)} {place}>{escape(text)}</text>")

    def to_svg(self) -> Svg:
        return Svg(f"{self._head}>{''.join(self._shapes)}</svg>")


def _path(points: Iterable[Point]) -> str:
    return "M" + "L".join(f"{_format_coordinate(x)} {_format_coordinate(y)}" for x, y in points)


def _attributes(css: str) -> str:
    return f" class={_quoted(css)}" if css else ""


def _quoted(text: str) -> str:
    return quoteattr(text, {'"': "&quot;"})


def _format_coordinate(number: float) -> str:
    return f"{round(number, 1):g}"
