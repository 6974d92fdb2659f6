"""Calibrate the probabilities of a consensus on gold: calibration error, temperature, acceptance threshold.

    ECE = Σ over bins b of |b|/n · |right share of b - mean confidence of b|,   bins of equal width

One temperature, fitted on gold, corrects the overconfidence of a first-error posterior. The acceptance threshold is the
lowest confidence above which the share of right answers on gold keeps a promise.

M. P. Naeini, G. Cooper, M. Hauskrecht (2015), doi:10.1609/aaai.v29i1.9602; C. Guo et al. (2017), arXiv:1706.04599.
"""

from dataclasses import dataclass

import numpy as np

from stats import first_error_dawid_skene
from stats.arrays import Bools, Floats
from stats.estimates import Reason
from stats.first_error_reports import FirstErrorPlaces
from stats.intervals import clopper_pearson_interval

BINS = 15
MIN_TEMPERATURE_GOLD = 100  # gold traces
MIN_ACCEPTANCE_GOLD = 50  # gold traces
_TEMPERATURE_RANGE = (0.1, 30.0)
_GOLDEN_RATIO = (5**0.5 - 1) / 2
_SMALLEST = 1e-300
_THRESHOLDS = 20


def expected_calibration_error(*, confidences: Floats, is_right: Bools, bins: int = BINS) -> float:
    """Return the expected calibration error, NaN for no confidences."""
    if not len(confidences):
        return float("nan")
    place = np.minimum((confidences * bins).astype(np.int64), bins - 1)
    gap = np.bincount(place, weights=is_right.astype(np.float64) - confidences, minlength=bins)
    return float(np.abs(gap).sum() / len(confidences))


@dataclass(frozen=True)
class Temperature:
    value: float
    n_gold: int
    reason: Reason | None = None


def fit_temperature(*, posterior: Floats, places: FirstErrorPlaces, is_accepted: Bools) -> Temperature:
    """Fit one temperature by likelihood on gold, with a golden-section search.

    `is_accepted` marks the right places of gold traces; a trace without any is not gold. (scipy.optimize would save ten
    lines and cost every worker 50 MB.)
    """
    is_gold = np.bincount(places.traces, weights=is_accepted, minlength=len(places.starts)) > 0
    n_gold = int(is_gold.sum())
    if n_gold < MIN_TEMPERATURE_GOLD:
        return Temperature(1.0, n_gold, Reason.FEW_GOLD)
    logs = np.log(np.maximum(posterior, _SMALLEST))

    def loss(log_temperature: float) -> float:
        cooled, _ = first_error_dawid_skene.normalize_within_traces(logs / np.exp(log_temperature), places)
        right = np.bincount(places.traces, weights=cooled * is_accepted, minlength=len(places.starts))[is_gold]
        return float(-np.log(np.maximum(right, _SMALLEST)).sum())

    low, high = np.log(_TEMPERATURE_RANGE)
    for _ in range(40):
        first, second = high - _GOLDEN_RATIO * (high - low), low + _GOLDEN_RATIO * (high - low)
        low, high = (low, second) if loss(first) <= loss(second) else (first, high)
    return Temperature(float(np.exp((low + high) / 2)), n_gold)


def apply_temperature(*, posterior: Floats, places: FirstErrorPlaces, temperature: Temperature) -> Floats:
    logs = np.log(np.maximum(posterior, _SMALLEST)) / temperature.value
    return first_error_dawid_skene.normalize_within_traces(logs, places)[0]


@dataclass(frozen=True)
class AcceptanceThreshold:
    """Accept at this confidence and above. Without a threshold, `reason` says why no promise can be made."""

    threshold: float | None
    n_gold: int
    n_accepted: int
    lower_bound: float | None
    reason: Reason | None = None


def choose_acceptance_threshold(
    *, confidences: Floats, is_right: Bools, promised: float = 0.9, level: float = 0.9
) -> AcceptanceThreshold:
    """Choose the lowest threshold whose one-sided lower bound on the right share is at least `promised`."""
    if len(confidences) < MIN_ACCEPTANCE_GOLD:
        return AcceptanceThreshold(None, len(confidences), 0, None, Reason.FEW_GOLD)
    order = np.argsort(-confidences, kind="stable")
    ranked, right = confidences[order], np.cumsum(is_right[order])
    best: tuple[int, float] | None = None
    for rank in np.unique(
        np.linspace(max(MIN_ACCEPTANCE_GOLD, len(ranked) // 4), len(ranked), _THRESHOLDS).astype(int)
    ):
        n = int(np.searchsorted(-ranked, -ranked[rank - 1], side="right"))  # include all equal confidences
        bound = clopper_pearson_interval(right=int(right[n - 1]), n=n, level=2 * level - 1).low
        if bound < promised:
            break
        best = (n, bound)
    if best is None:
        return AcceptanceThreshold(None, len(ranked), 0, None, Reason.BELOW_PROMISE)
    return AcceptanceThreshold(float(ranked[best[0] - 1]), len(ranked), best[0], best[1])
