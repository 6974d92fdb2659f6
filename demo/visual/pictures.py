"""Draw charts and figures as PNG files. Pillow is imported inside the functions, because only the demo needs them."""

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

SIZE = (520, 260)
_LEFT, _TOP, _RIGHT, _BOTTOM = 50, 40, 504, 220  # of the area of a chart
_INK, _GRID, _COLOR, _FILL = (40, 44, 52), (214, 218, 224), (42, 100, 176), (222, 233, 247)

Point = tuple[float, float]


def render_bars(title: str, names: Sequence[str], values: Sequence[int], *, grid: int = 10) -> bytes:
    def draw(canvas: "ImageDraw", font: "FreeTypeFont") -> None:
        for (x, y), _ in zip(_draw_axes(canvas, font, title, names, values, grid), values, strict=True):
            canvas.rectangle((x - 26, y, x + 26, _BOTTOM), fill=_COLOR)

    return _draw_picture(draw)


def render_line(title: str, names: Sequence[str], values: Sequence[int], *, grid: int) -> bytes:
    def draw(canvas: "ImageDraw", font: "FreeTypeFont") -> None:
        points = _draw_axes(canvas, font, title, names, values, grid)
        canvas.line(points, fill=_COLOR, width=3)
        for x, y in points:
            canvas.ellipse((x - 5, y - 5, x + 5, y + 5), fill=_COLOR)

    return _draw_picture(draw)


def render_figure(corners: Sequence[Point], labels: Sequence[tuple[Point, str]], *, right_angle: Point) -> bytes:
    """Draw a polygon with a square in a corner whose right angle opens to the upper right."""

    def draw(canvas: "ImageDraw", font: "FreeTypeFont") -> None:
        canvas.polygon(corners, fill=_FILL, outline=_INK, width=3)
        x, y = right_angle
        canvas.line([(x, y - 18), (x + 18, y - 18), (x + 18, y)], fill=_INK, width=2)
        for place, text in labels:
            canvas.text(place, text, fill=_INK, font=font, anchor="mm")

    return _draw_picture(draw)


def _draw_axes(
    canvas: "ImageDraw", font: "FreeTypeFont", title: str, names: Sequence[str], values: Sequence[int], grid: int
) -> list[Point]:
    """Draw title, lines, names and numbers, and return the point of each value."""
    n_lines = -(-max(values) // grid) + 1
    height = (_BOTTOM - _TOP) / (n_lines - 1)
    canvas.text((_LEFT, 20), title, fill=_INK, font=font, anchor="lm")
    for line in range(n_lines):
        y = _BOTTOM - line * height
        canvas.line((_LEFT, y, _RIGHT, y), fill=_INK if not line else _GRID, width=1)
        canvas.text((_LEFT - 8, y), str(line * grid), fill=_INK, font=font, anchor="rm")
    width = (_RIGHT - _LEFT) / len(values)
    points = [(_LEFT + (place + 0.5) * width, _BOTTOM - value / grid * height) for place, value in enumerate(values)]
    for (x, _), name in zip(points, names, strict=True):
        canvas.text((x, _BOTTOM + 20), name, fill=_INK, font=font, anchor="mm")
    return points


def _draw_picture(draw: Callable[["ImageDraw", "FreeTypeFont"], None]) -> bytes:
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", SIZE, "white")
    draw(ImageDraw.Draw(image), ImageFont.load_default(15))  # type: ignore[arg-type]  # with a size, it is FreeType
    content = io.BytesIO()
    image.save(content, "PNG", compress_level=1)  # the import encodes it again
    return content.getvalue()
