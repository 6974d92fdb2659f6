"""The figures of a dataset card: which there are, and the rows of each. Pure; `charts.standalone` draws them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from charts.standalone import ShareBar, ShareInterval, draw_share_bars, draw_share_intervals
from exports import card

_MAX_ERROR_STEPS = 15
_RATING_LABELS = {"-1": "negative (-1)", "0": "neutral (0)", "1": "positive (+1)"}


class CardFigure(NamedTuple):
    file_name: str
    caption: str
    svg: str


def draw_card_figures(facts: Mapping[str, Any], plan: Mapping[str, Any]) -> Iterator[CardFigure]:
    """Draw every figure that has data."""
    agreement = facts.get("agreement") or {}
    domains = agreement.get("domains", [])
    bars = (
        ("labels.svg", "Distribution of ratings", _rating_bars(facts.get("labels", {}))),
        ("first_errors.svg", "Position of the first error", _first_error_bars(facts.get("first_errors", {}))),
        ("selection.svg", "Sampling sources", _source_bars(facts["arms"], plan)),
    )
    intervals = (
        (
            "agreement.svg",
            "Agreement with 95% intervals",
            [_build_interval(label, estimate) for label, estimate in card.agreement_estimates(agreement)],
        ),
        (
            "domains.svg",
            "Agreement on the first error by domain",
            [_build_interval(f"{row['key'] or 'no domain'} ({row['n_traces']:,})", row["exact"]) for row in domains]
            if len(domains) > 1
            else [],
        ),
    )
    for file_name, caption, bar_rows in bars:
        if rows := list(bar_rows):
            yield CardFigure(file_name, caption, draw_share_bars(caption, rows))
    for file_name, caption, interval_rows in intervals:
        if interval_rows:
            yield CardFigure(file_name, caption, draw_share_intervals(caption, interval_rows))


def _rating_bars(counts: Mapping[str, int]) -> Iterator[ShareBar]:
    total = sum(counts.values())
    for rating, label in _RATING_LABELS.items() if total else ():
        n = counts.get(rating, 0)
        yield ShareBar(label, n / total, f"{n / total:.1%} ({n:,})", css=label.split()[0])


def _first_error_bars(counts: Mapping[str, int]) -> Iterator[ShareBar]:
    """Bars by step number, counted from 1; the last steps are one bar. Then submissions without an error."""
    by_position = {int(key): n for key, n in counts.items() if key.isdecimal()}
    n_bars = min(max(by_position, default=-1) + 1, _MAX_ERROR_STEPS)
    bars = [(f"step {position + 1}", by_position.get(position, 0)) for position in range(n_bars)]
    others = [
        (f"after step {_MAX_ERROR_STEPS}", sum(n for at, n in by_position.items() if at >= _MAX_ERROR_STEPS)),
        ("no error", counts.get("none", 0)),
        ("ended early", counts.get("cut_off", 0)),
    ]
    bars += [(label, n) for label, n in others if n]
    total, longest = sum(counts.values()), max((n for _, n in bars), default=0)
    for label, n in bars:
        yield ShareBar(label, n / longest, f"{n:,} ({n / total:.1%})")


def _source_bars(sources: Sequence[Mapping[str, Any]], plan: Mapping[str, Any]) -> Iterator[ShareBar]:
    """Bars of rows by sampling source, then the effective sample size of the draws with a known probability."""
    total = sum(source["n"] for source in sources)
    for source in sources if total else ():
        n = source["n"]
        yield ShareBar(source["arm"] or "not recorded", n / total, f"{n:,} rows ({n / total:.1%})")
    if n_draws := plan.get("n_weighted"):
        size = plan["effective_sample_size"]
        yield ShareBar("effective sample size", size / n_draws, f"{size:,.0f} of {n_draws:,} draws", "dark")


def _build_interval(label: str, estimate: Mapping[str, Any]) -> ShareInterval:
    value, low, high = (estimate.get(key) for key in ("value", "low", "high"))
    return ShareInterval(label, " ".join(card.format_estimate(estimate)), value, low, high)
