"""Small figures of a card, as SVG that carries its own colours: a card is read where our style sheets are not. Pure."""

import contextlib
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape

from exports import card

_WIDTH, _ROW, _LEFT, _RIGHT = 520, 26, 190, 380


def agreement(headline: Mapping[str, Any]) -> str:
    """Each statistic with its interval, between 0 and 1 (what is below nought stands at nought)."""
    rows = list(card.estimates(headline))
    height = _ROW * len(rows) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
        ' role="img" aria-label="Agreement with 95 % intervals" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for number, (name, value, interval) in enumerate(rows):
        parts += _row(_ROW * number + 18, name, value, interval)
    foot = height - 8
    for place in (0, 0.5, 1):
        parts.append(f'<text x="{_x(place)}" y="{foot}" text-anchor="middle" fill="#5a6270">{place:g}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _row(y: int, name: str, value: str, interval: str) -> list[str]:
    parts = [
        f'<text x="0" y="{y + 4}" fill="#16191d">{escape(name)}</text>',
        f'<path d="M{_x(0)} {y}H{_x(1)}" stroke="#d5d9e0"/>',
        f'<text x="{_RIGHT + 12}" y="{y + 4}" fill="#16191d">{escape(value)} {escape(interval)}</text>',
    ]
    if interval.startswith("["):
        low, high = (float(each) for each in interval[1:-1].split(","))
        parts.append(f'<path d="M{_x(low)} {y}H{_x(high)}" stroke="#5a6270" stroke-width="3"/>')
    with contextlib.suppress(ValueError):  # a reason instead of a value
        parts.append(f'<circle cx="{_x(float(value))}" cy="{y}" r="4" fill="#16191d"/>')
    return parts


def _x(value: float) -> float:
    return round(_LEFT + (_RIGHT - _LEFT) * min(max(value, 0.0), 1.0), 1)
