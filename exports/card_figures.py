"""Small figures of a card, as SVG that carries its own colours: a card is read where our style sheets are not. Pure.

Every number that is drawn is written beside it.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from exports import card

_WIDTH, _ROW, _LEFT, _RIGHT = 500, 24, 180, 300
_INK, _QUIET, _LINE, _BAR = "#16191d", "#5a6270", "#d5d9e0", "#3f5f8a"
_RATING_COLORS = {"-1": "#b3372f", "0": "#8a919e", "1": "#2c7a51"}
_MOST_PLACES = 15


class CardBar(NamedTuple):
    name: str
    share: float  # of the longest that there could be
    told: str
    colour: str = _BAR


class CardInterval(NamedTuple):
    """A value with its interval, as the card writes them; or the reason why there is none."""

    name: str
    value: str
    interval: str


DrawFigure = Callable[[str, Sequence[Any]], str]  # what it shows, and rows of the drawing's own kind


def draw_card_figures(facts: Mapping[str, Any], plan: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Each figure that there is something to draw for: its file, what it shows, and the drawing."""
    agreement = facts.get("agreement")
    spans = [CardInterval(*each) for each in card.agreement_rows(agreement)] if agreement else []
    domains = list(_domain_intervals(agreement["domains"])) if agreement and len(agreement["domains"]) > 1 else []
    wanted: Sequence[tuple[str, str, DrawFigure, Sequence[Any]]] = (
        ("labels.svg", "How ratings spread", draw_bars, list(_rating_bars(facts.get("labels", {})))),
        (
            "first_errors.svg",
            "Where readings saw the first error",
            draw_bars,
            list(_first_error_bars(facts.get("first_errors", {}))),
        ),
        ("agreement.svg", "Agreement with 95 % intervals", draw_intervals, spans),
        ("domains.svg", "Agreement on the first error by domain", draw_intervals, domains),
        ("selection.svg", "How traces came to be read", draw_bars, list(_arm_bars(facts["arms"], plan))),
    )
    for name, shows, draw, rows in wanted:
        if rows:
            yield name, shows, draw(shows, rows)


def _rating_bars(labels: Mapping[str, int]) -> Iterator[CardBar]:
    total = sum(labels.values())
    names = {"-1": "negative (-1)", "0": "neutral (0)", "1": "positive (+1)"}
    for key, name in names.items() if total else ():
        n = labels.get(key, 0)
        yield CardBar(name, n / total, f"{n / total:.1%} ({n:,})", _RATING_COLORS[key])


def _first_error_bars(counted: Mapping[str, int]) -> Iterator[CardBar]:
    """By the number of the step as people count, from 1; far ones together; then readings without an error."""
    found = {int(place): n for place, n in counted.items() if place.isdecimal()}
    near = {place: found.get(place, 0) for place in range(min(max(found, default=-1) + 1, _MOST_PLACES))}
    bars = [(f"step {place + 1}", n) for place, n in near.items()]
    bars += [(f"later than step {_MOST_PLACES}", sum(n for place, n in found.items() if place >= _MOST_PLACES))]
    bars += [("no error", counted.get("none", 0)), ("given up before", counted.get("cut_off", 0))]
    total, longest = sum(counted.values()), max((n for _, n in bars), default=0)
    for name, n in bars:
        if n or name.startswith("step"):
            yield CardBar(name, n / longest if longest else 0.0, f"{n:,} ({n / total:.1%})")


def _domain_intervals(rows: Sequence[Mapping[str, Any]]) -> Iterator[CardInterval]:
    for row in rows:
        value, interval = card.format_estimate(row["exact"])
        yield CardInterval(f"{row['key'] or 'no domain'} ({row['n_traces']:,})", value, interval)


def _arm_bars(arms: Sequence[Mapping[str, Any]], plan: Mapping[str, Any]) -> Iterator[CardBar]:
    """Rows by arm; and of what was drawn with a known probability, how many equal draws it is worth."""
    total = sum(each["n"] for each in arms)
    for each in arms if total else ():
        yield CardBar(each["arm"] or "not recorded", each["n"] / total, f"{each['n']:,} rows ({each['n'] / total:.1%})")
    drawn = plan.get("n_weighted")
    if drawn:
        worth = plan["effective_sample_size"]
        yield CardBar("effective sample size", worth / drawn, f"{worth:,.0f} of {drawn:,} draws", _INK)


def draw_bars(shows: str, rows: Sequence[CardBar]) -> str:
    parts = []
    for number, row in enumerate(rows):
        y = _ROW * number + 6
        width = round((_RIGHT - _LEFT) * min(max(row.share, 0.0), 1.0), 1)
        parts += [
            _draw_text(0, y + 13, row.name),
            f'<rect x="{_LEFT}" y="{y}" width="{_RIGHT - _LEFT}" height="14" fill="{_LINE}" opacity=".4"/>',
            f'<rect x="{_LEFT}" y="{y}" width="{width}" height="14" fill="{row.colour}"/>',
            _draw_text(_RIGHT + 12, y + 13, row.told),
        ]
    return _wrap_svg(shows, _ROW * len(rows) + 8, parts)


def draw_intervals(shows: str, rows: Sequence[CardInterval]) -> str:
    """Each between 0 and 1; what is below nought stands at nought."""
    parts = []
    for number, row in enumerate(rows):
        parts += _draw_interval(_ROW * number + 16, row)
    foot = _ROW * len(rows) + 18
    parts += [_draw_text(_x(place), foot, f"{place:g}", anchor="middle", colour=_QUIET) for place in (0, 0.5, 1)]
    return _wrap_svg(shows, foot + 8, parts)


def _draw_interval(y: int, row: CardInterval) -> list[str]:
    parts = [
        _draw_text(0, y + 4, row.name),
        f'<path d="M{_x(0)} {y}H{_x(1)}" stroke="{_LINE}"/>',
        _draw_text(_RIGHT + 12, y + 4, f"{row.value} {row.interval}"),
    ]
    if row.interval.startswith("["):
        low, high = (float(each) for each in row.interval[1:-1].split(","))
        parts.append(f'<path d="M{_x(low)} {y}H{_x(high)}" stroke="{_QUIET}" stroke-width="3"/>')
    with contextlib.suppress(ValueError):  # a reason instead of a value
        parts.append(f'<circle cx="{_x(float(row.value))}" cy="{y}" r="4" fill="{_INK}"/>')
    return parts


def _x(value: float) -> float:
    return round(_LEFT + (_RIGHT - _LEFT) * min(max(value, 0.0), 1.0), 1)


def _draw_text(x: float, y: float, text: str, *, anchor: str = "start", colour: str = _INK) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}">{escape(_shorten(text))}</text>'


def _shorten(text: str) -> str:
    return text if len(text) <= 30 else f"{text[:29]}…"


def _wrap_svg(shows: str, height: int, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
        f' role="img" aria-label={quoteattr(shows)} font-family="sans-serif" font-size="13">'
    )
    return "\n".join([head, f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>', *parts, "</svg>"]) + "\n"
