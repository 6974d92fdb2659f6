"""One temperature that takes the over-confidence out of a first-error posterior, fitted on gold.

    p_τ(e) ∝ p(e)^(1/τ),   τ = argmin - Σ over gold traces of log Σ_{e accepted} p_τ(e)

Raters who share a blind spot make the posterior too sure; τ > 1 spreads it. Below 100 gold traces τ is 1 and says so.

C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017), "On calibration of modern neural networks", arXiv:1706.04599.
"""

from dataclasses import dataclass

import numpy as np

from labeling.agreement import first_error_dawid_skene
from labeling.agreement.arrays import Bools, Floats
from labeling.agreement.reports import Places
from labeling.agreement.result import Reason

LEAST_GOLD = 100  # traces
_RANGE = (0.1, 30.0)
_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Temperature:
    value: float
    n_gold: int
    reason: Reason | None = None


def fit(*, posterior: Floats, there: Places, is_accepted: Bools) -> Temperature:
    """`is_accepted` marks, on gold traces, the places that are right; a trace without any is not gold."""
    accepted = np.bincount(there.traces, weights=is_accepted, minlength=len(there.starts)) > 0
    n_gold = int(accepted.sum())
    if n_gold < LEAST_GOLD:
        return Temperature(1.0, n_gold, Reason.FEW_GOLD)
    logs = np.log(np.maximum(posterior, 1e-300))

    def loss(log_temperature: float) -> float:
        cooled, _ = first_error_dawid_skene.normalised(logs / np.exp(log_temperature), there)
        right = np.bincount(there.traces, weights=cooled * is_accepted, minlength=len(there.starts))[accepted]
        return float(-np.log(np.maximum(right, 1e-300)).sum())

    low, high = np.log(_RANGE)
    for _ in range(40):
        first, second = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        low, high = (low, second) if loss(first) <= loss(second) else (first, high)
    return Temperature(float(np.exp((low + high) / 2)), n_gold)


def apply(*, posterior: Floats, there: Places, temperature: Temperature) -> Floats:
    logs = np.log(np.maximum(posterior, 1e-300)) / temperature.value
    return first_error_dawid_skene.normalised(logs, there)[0]
