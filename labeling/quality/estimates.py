"""Estimates as plain rows for storing and showing: value, interval, counts, and the reason of whatever is missing."""

from typing import Any

from labeling.agreement import first_error, headline
from labeling.agreement.patterns import Patterns
from labeling.agreement.reports import Reports
from labeling.agreement.result import Estimate

# Of a slice, where all seven would be noise.
FEW = ("alpha_nominal", "alpha_ordinal", "gwet_ac1", "pairwise_agreement")


def row(estimate: Estimate) -> dict[str, Any]:
    interval, beside = estimate.interval, estimate.bootstrap
    return {
        "value": estimate.value,
        "reason": estimate.reason,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "interval_reason": estimate.interval_reason,
        "bootstrap": [beside.low, beside.high] if beside else None,
        "bootstrap_reason": estimate.bootstrap_reason,
        "n": estimate.counts.units,
        "n_paired": estimate.counts.pairable,
        "n_problems": estimate.counts.problems,
    }


def of_steps(patterns: Patterns, *, with_bootstrap: bool = False) -> dict[str, Any]:
    names = headline.NAMES if with_bootstrap else FEW
    found = headline.of_patterns(patterns, names=names, with_bootstrap=with_bootstrap)
    return {name: row(estimate) for name, estimate in found.items()}


def shares(patterns: Patterns) -> dict[str, float]:
    """How ratings spread over -1, 0 and +1."""
    return {str(int(value)): share for value, share in headline.label_shares(patterns).items()}


def of_first_errors(reports: Reports, *, with_bootstrap: bool = False) -> dict[str, Any]:
    found = first_error.agreement(reports, with_bootstrap=with_bootstrap)
    return {
        "exact": row(found.exact),
        "within_one": row(found.within_one),
        "has_error_kappa": row(found.has_error_kappa),
        "pairs": found.pairs,
        "pairs_with_a_censored_report": found.pairs_with_a_censored_report,
    }


def of_places(reports: Reports) -> dict[str, Any]:
    """Of traces that were chosen by where an error was seen: whether there is one cannot be asked of them."""
    return {name: told for name, told in of_first_errors(reports).items() if name != "has_error_kappa"}
