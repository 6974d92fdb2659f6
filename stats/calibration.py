"""Expected calibration error: how far stated confidence lies from the share that was right.

    ECE = Σ over bins b of |b|/n · |right share of b - mean confidence of b|,   bins of equal width

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


def expected_calibration_error(*, confidences: Floats, is_right: Bools, bins: int = BINS) -> float:
    """NaN where there is nothing to be calibrated on."""
    if not len(confidences):
        return float("nan")
    place = np.minimum((confidences * bins).astype(np.int64), bins - 1)
    gap = np.bincount(place, weights=is_right.astype(np.float64) - confidences, minlength=bins)
    return float(np.abs(gap).sum() / len(confidences))


# One temperature that takes the over-confidence out of a first-error posterior, fitted on gold.


MIN_TEMPERATURE_GOLD = 100  # traces
_TEMPERATURE_RANGE = (0.1, 30.0)
_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Temperature:
    value: float
    n_gold: int
    reason: Reason | None = None


def fit_temperature(*, posterior: Floats, there: FirstErrorPlaces, is_accepted: Bools) -> Temperature:
    """`is_accepted` marks, on gold traces, the places that are right; a trace without any is not gold."""
    accepted = np.bincount(there.traces, weights=is_accepted, minlength=len(there.starts)) > 0
    n_gold = int(accepted.sum())
    if n_gold < MIN_TEMPERATURE_GOLD:
        return Temperature(1.0, n_gold, Reason.FEW_GOLD)
    logs = np.log(np.maximum(posterior, 1e-300))

    def loss(log_temperature: float) -> float:
        cooled, _ = first_error_dawid_skene.normalize_within_traces(logs / np.exp(log_temperature), there)
        right = np.bincount(there.traces, weights=cooled * is_accepted, minlength=len(there.starts))[accepted]
        return float(-np.log(np.maximum(right, 1e-300)).sum())

    low, high = np.log(_TEMPERATURE_RANGE)
    for _ in range(40):
        first, second = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        low, high = (low, second) if loss(first) <= loss(second) else (first, high)
    return Temperature(float(np.exp((low + high) / 2)), n_gold)


def apply_temperature(*, posterior: Floats, there: FirstErrorPlaces, temperature: Temperature) -> Floats:
    logs = np.log(np.maximum(posterior, 1e-300)) / temperature.value
    return first_error_dawid_skene.normalize_within_traces(logs, there)[0]


# Which consensus may be accepted without a person looking: a threshold that keeps its promise.


MIN_ACCEPTANCE_GOLD = 50  # gold traces
_THRESHOLDS = 20


@dataclass(frozen=True)
class AcceptanceThreshold:
    """Accept at this confidence and above; no threshold, and why, where no promise can be kept."""

    threshold: float | None
    n_gold: int
    n_accepted: int
    lower_bound: float | None
    reason: Reason | None = None


def choose_acceptance_threshold(
    *, confidences: Floats, is_right: Bools, promised: float = 0.9, level: float = 0.9
) -> AcceptanceThreshold:
    if len(confidences) < MIN_ACCEPTANCE_GOLD:
        return AcceptanceThreshold(None, len(confidences), 0, None, Reason.FEW_GOLD)
    order = np.argsort(-confidences, kind="stable")
    ranked, right = confidences[order], np.cumsum(is_right[order])
    kept: tuple[int, float] | None = None
    for look in np.unique(
        np.linspace(max(MIN_ACCEPTANCE_GOLD, len(ranked) // 4), len(ranked), _THRESHOLDS).astype(int)
    ):
        n = int(np.searchsorted(-ranked, -ranked[look - 1], side="right"))  # equal confidence goes together
        bound = clopper_pearson_interval(right=int(right[n - 1]), n=n, level=2 * level - 1).low  # one-sided
        if bound < promised:
            break
        kept = (n, bound)
    if kept is None:
        return AcceptanceThreshold(None, len(ranked), 0, None, Reason.BELOW_PROMISE)
    return AcceptanceThreshold(float(ranked[kept[0] - 1]), len(ranked), kept[0], kept[1])
