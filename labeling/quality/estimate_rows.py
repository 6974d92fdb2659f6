"""Estimates as plain rows for storing and showing: value, interval, counts, and the reason of whatever is missing."""

from typing import Any

from stats import first_error_agreement, step_agreement
from stats.estimates import Estimate
from stats.first_error_reports import ReportArrays
from stats.rating_patterns import RatingPatterns

# Of a slice, where all seven would be noise.
SLICE_STATISTICS = ("alpha_nominal", "alpha_ordinal", "gwet_ac1", "pairwise_agreement")


def estimate_row(estimate: Estimate) -> dict[str, Any]:
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


def step_agreement_rows(patterns: RatingPatterns, *, with_bootstrap: bool = False) -> dict[str, Any]:
    names = step_agreement.STATISTIC_NAMES if with_bootstrap else SLICE_STATISTICS
    found = step_agreement.estimate_step_statistics(patterns, names=names, with_bootstrap=with_bootstrap)
    return {name: estimate_row(estimate) for name, estimate in found.items()}


def label_shares_row(patterns: RatingPatterns) -> dict[str, float]:
    """How ratings spread over -1, 0 and +1."""
    return {str(int(value)): share for value, share in step_agreement.label_shares(patterns).items()}


def first_error_rows(reports: ReportArrays, *, with_bootstrap: bool = False) -> dict[str, Any]:
    found = first_error_agreement.estimate_agreement(reports, with_bootstrap=with_bootstrap)
    return {
        "exact": estimate_row(found.exact),
        "within_one": estimate_row(found.within_one),
        "has_error_kappa": estimate_row(found.has_error_kappa),
        "pairs": found.pairs,
        "pairs_with_a_censored_report": found.pairs_with_a_censored_report,
    }


def first_error_place_rows(reports: ReportArrays) -> dict[str, Any]:
    """Of traces that were chosen by where an error was seen: whether there is one cannot be asked of them."""
    return {name: told for name, told in first_error_rows(reports).items() if name != "has_error_kappa"}
