"""Estimates as JSON rows: value, intervals, counts, and the reason for each missing number."""

from typing import Any

from stats import first_error_agreement, step_agreement
from stats.estimates import Estimate
from stats.first_error_reports import ReportArrays
from stats.rating_patterns import RatingPatterns

# For slices, where all seven would be too much.
SLICE_STATISTICS = ("alpha_nominal", "alpha_ordinal", "gwet_ac1", "pairwise_agreement")


def estimate_row(estimate: Estimate) -> dict[str, Any]:
    interval, bootstrap = estimate.interval, estimate.bootstrap
    return {
        "value": estimate.value,
        "reason": estimate.reason,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "interval_reason": estimate.interval_reason,
        "bootstrap": [bootstrap.low, bootstrap.high] if bootstrap else None,
        "bootstrap_reason": estimate.bootstrap_reason,
        "n": estimate.counts.units,
        "n_paired": estimate.counts.pairable,
        "n_problems": estimate.counts.problems,
    }


def step_agreement_rows(patterns: RatingPatterns, *, with_bootstrap: bool = False) -> dict[str, Any]:
    names = step_agreement.STATISTIC_NAMES if with_bootstrap else SLICE_STATISTICS
    estimates = step_agreement.estimate_step_statistics(patterns, names=names, with_bootstrap=with_bootstrap)
    return {name: estimate_row(estimate) for name, estimate in estimates.items()}


def label_shares_row(patterns: RatingPatterns) -> dict[str, float]:
    return {str(int(value)): share for value, share in step_agreement.label_shares(patterns).items()}


def first_error_rows(reports: ReportArrays, *, with_bootstrap: bool = False) -> dict[str, Any]:
    agreement = first_error_agreement.estimate_agreement(reports, with_bootstrap=with_bootstrap)
    return {
        "exact": estimate_row(agreement.exact),
        "within_one": estimate_row(agreement.within_one),
        "has_error_kappa": estimate_row(agreement.has_error_kappa),
        "pairs": agreement.pairs,
        "pairs_with_a_censored_report": agreement.pairs_with_a_censored_report,
    }


def first_error_place_rows(reports: ReportArrays) -> dict[str, Any]:
    """Return the rows without has-error kappa, for traces that were selected because they have an error."""
    return {name: row for name, row in first_error_rows(reports).items() if name != "has_error_kappa"}
