"""How far a snapshot is to be trusted, as its card says it: what is contested, agreement, figures. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

Figures = Mapping[str, str]  # what each drawing shows, by its file
SHOWN = {
    "exact": "First error, exact",
    "within_one": "First error, within one step",
    "has_error_kappa": "Has an error, kappa",
    "alpha_nominal": "Alpha, nominal",
    "alpha_ordinal": "Alpha, ordinal",
    "gwet_ac1": "Gwet AC1",
    "pairwise_agreement": "Pairwise agreement",
}


def write(facts: Mapping[str, Any], figures: Figures) -> str:
    contested = facts["contested"]
    known = contested.get("True", 0) + contested.get("False", 0)
    share = f"{contested.get('True', 0) / known:.1%} of the rows whose trace was settled" if known else "not known"
    lines = ["## How far to trust it", "", f"Contested: {share}.", ""]
    return "\n".join([*lines, *drawn(figures, "labels.svg", "first_errors.svg"), *_agreement(facts, figures)])


def _agreement(facts: Mapping[str, Any], figures: Figures) -> Iterator[str]:
    found = facts.get("agreement")
    if not found:
        yield "Agreement was not measured: no trace has two scheduled, blind readings among the rows."
        return
    yield from drawn(figures, "agreement.svg", "domains.svg")
    yield from ("| statistic | value | 95 % interval |", "|---|---|---|")
    yield from (f"| {name} | {value} | {interval} |" for name, value, interval in estimates(found))
    whose = "of the audit slice, a random sample of the pool," if found["is_audit_slice"] else "among the rows"
    yield ""
    yield (
        f"Of the {found['n_traces']:,} traces {whose} that hold both of their first two scheduled readings, blind and "
        "as first submitted. Intervals by problem (jackknife)."
    )


def drawn(figures: Figures, *names: str) -> Iterator[str]:
    """Figures, where there was something to draw."""
    for name in names:
        if name in figures:
            yield from (f"![{figures[name]}]({name})", "")


def estimates(agreement: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Name, value and interval of each statistic."""
    for key, name in SHOWN.items():
        found = (agreement.get("first_error") or {}).get(key) or (agreement.get("steps") or {}).get(key)
        if isinstance(found, Mapping):
            yield name, *told(found)


def told(found: Mapping[str, Any]) -> tuple[str, str]:
    """A value and its interval in figures, or why there is none."""
    value, low, high = (found.get(part) for part in ("value", "low", "high"))
    interval = f"[{low:.3f}, {high:.3f}]" if low is not None and high is not None else found.get("interval_reason")
    return f"{value:.3f}" if value is not None else str(found.get("reason")), str(interval)
