"""Check the stated probabilities of a machine against what happened: reliability bins, Brier score, calibration error.

    Brier  mean of (p - right)²
    ECE    Σ over bins √max(gap² - its variance, 0),   gap = Σ over cases of the bin of (right - p) / n, equal width

The plain calibration error Σ |gap| is never zero, because chance alone makes every bin deviate; so the variance of each
gap is subtracted. Intervals are by problem. That of the ECE is around the plain estimate, and starts at zero if a
chi-squared test of all gaps cannot tell the machine from a calibrated one (measured in `bench.machine_raters`).

G. W. Brier (1950), doi:10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2; M. P. Naeini, G. Cooper, M. Hauskrecht (2015),
doi:10.1609/aaai.v29i1.9602; on its bias: A. Kumar, P. Liang, T. Ma (2019), arXiv:1909.10155.
"""

import math
from dataclasses import dataclass

import numpy as np

from stats import estimation
from stats.arrays import Bools, Floats, Ints
from stats.estimates import Estimate, Interval, Reason, UnitCounts, defined_estimate, undefined_estimate
from stats.intervals import MIN_JACKKNIFE_PROBLEMS, chi_squared_quantile, t_quantile

BINS = 10


@dataclass(frozen=True)
class ReliabilityBin:
    low: float
    high: float
    n: int
    mean_confidence: float
    right_share: float
    interval: Interval | None  # of the right share


@dataclass(frozen=True)
class Reliability:
    bins: tuple[ReliabilityBin, ...]  # those with cases
    brier: Estimate
    calibration_error: Estimate


def estimate_reliability(
    *, confidences: Floats, is_right: Bools, problems: Ints, bins: int = BINS, level: float = 0.95
) -> Reliability:
    _, problem = np.unique(problems, return_inverse=True)
    place = np.minimum((confidences * bins).astype(np.int64), bins - 1)
    found = []
    for number in np.unique(place):
        own = place == number
        hits = np.bincount(problem[own], weights=is_right[own]).astype(np.int64)
        share = estimation.estimate_share(hits, np.bincount(problem[own]).astype(np.int64))
        found.append(
            ReliabilityBin(
                low=number / bins,
                high=(number + 1) / bins,
                n=int(own.sum()),
                mean_confidence=float(confidences[own].mean()),
                right_share=float(is_right[own].mean()),
                interval=share.interval,
            )
        )
    return Reliability(
        tuple(found),
        _estimate_brier(confidences, is_right, problem),
        _estimate_calibration_error(confidences, is_right, problem, place, bins, level),
    )


def _estimate_brier(confidences: Floats, is_right: Bools, problem: Ints) -> Estimate:
    losses = np.bincount(problem, weights=(confidences - is_right) ** 2)
    matrix: Floats = np.column_stack([losses, np.bincount(problem)]).astype(np.float64)
    sample = estimation.sample_from_sums(matrix, is_comparable=matrix[:, 1] > 0, units=len(confidences))
    return estimation.estimate(statistic=estimation.share_statistic(0, 1), sample=sample, with_bootstrap=False)


def _estimate_calibration_error(
    confidences: Floats, is_right: Bools, problem: Ints, place: Ints, bins: int, level: float
) -> Estimate:
    n, n_problems = len(confidences), int(problem.max(initial=-1)) + 1
    counts = UnitCounts(n, n, n_problems)
    if not n:
        return undefined_estimate(Reason.NO_CASES, counts)
    gaps = np.bincount(problem * bins + place, weights=is_right - confidences, minlength=n_problems * bins)
    by_problem = gaps.reshape(n_problems, bins) / n
    totals = by_problem.sum(axis=0)
    scale = n_problems / max(n_problems - 1, 1)
    cases = np.bincount(problem * bins + place, minlength=n_problems * bins).reshape(n_problems, bins)
    mean_gaps = totals * n / np.maximum(cases.sum(axis=0), 1)
    variances = scale * ((by_problem - mean_gaps * cases / n) ** 2).sum(axis=0)
    value = float(np.sqrt(np.maximum(totals**2 - variances, 0.0)).sum())
    if n_problems < MIN_JACKKNIFE_PROBLEMS:
        return defined_estimate(value, counts, Reason.FEW_PROBLEMS, Reason.NOT_DRAWN)
    plain = float(np.abs(totals).sum())
    influence = by_problem @ np.sign(totals) - plain * np.bincount(problem) / n
    half = t_quantile(p=(1 + level) / 2, df=n_problems - 1) * math.sqrt(scale * float(influence @ influence))
    low = 0.0 if _may_be_calibrated(totals, variances, level) else max(plain - half, 0.0)
    interval = Interval(low, min(plain + half, 1.0), level, "sandwich-t by problem")
    return defined_estimate(value, counts, interval, Reason.NOT_DRAWN)


def _may_be_calibrated(gaps: Floats, variances: Floats, level: float) -> bool:
    is_used = variances > 0
    statistic = float((gaps[is_used] ** 2 / variances[is_used]).sum())
    return statistic <= chi_squared_quantile(p=level, df=max(int(is_used.sum()), 1)) and not np.any(gaps[~is_used])
