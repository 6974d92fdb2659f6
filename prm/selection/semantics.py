"""What a PRM's number means, and the hazard that follows from it.

    hazard    P(step right | earlier right):      h_i = 1 - score_i
    value     P(final answer right | prefix) v_i:  h_i = max(0, 1 - v_i / max(v_{i-1}, ε))
    progress  a signed difference, never a probability: only a calibration makes a hazard of it (`platt`)

v_0, the value before any step, is no number that a PRM gives. Over sampled solutions a value neither rises nor falls on
the average (it is a martingale), so v_0 is the mean value after the first step (`first_value`).

Value and hazard are two readings of one number: P. Wang et al. (2024), "Math-Shepherd", arXiv:2312.08935, trains the
value; H. Lightman et al. (2023), "Let's verify step by step", arXiv:2305.20050, the hazard; progress as in A. Setlur et
al. (2024), "Rewarding progress", arXiv:2410.08146.
"""

import enum

import numpy as np

from stats.arrays import Floats, Ints

UNKNOWN_VALUE = 0.5
_LEAST = 1e-6


class Semantics(enum.StrEnum):
    HAZARD = "hazard"
    VALUE = "value"
    PROGRESS = "progress"


def scores_to_hazards(
    *, scores: Floats, starts: Ints, semantics: Semantics, first_value: float = UNKNOWN_VALUE
) -> Floats:
    """The hazard of every step, before calibration; `starts` are the first steps of the traces."""
    if not np.isfinite(scores).all():
        raise ValueError("a score that is no number gives no hazard")
    if semantics is Semantics.PROGRESS:
        return np.asarray(1 / (1 + np.exp(np.clip(scores, -500, 500))))  # an order only, until it is calibrated
    if len(scores) and not (scores.min() >= 0 and scores.max() <= 1):
        raise ValueError(f"{semantics} scores lie in 0..1; declare a signed difference as progress")
    if semantics is Semantics.HAZARD:
        return np.asarray(1.0 - scores)
    before = np.concatenate([[first_value], scores[:-1]]) if len(scores) else scores
    before[starts] = first_value
    return np.asarray(np.clip(1.0 - scores / np.maximum(before, _LEAST), 0.0, 1.0), dtype=np.float64)


def mean_first_value(*, scores: Floats, starts: Ints) -> float:
    """v_0 of a "value" from a random sample of the pool, as the reserve is one."""
    return float(np.clip(scores[starts], 0.0, 1.0).mean()) if len(starts) else UNKNOWN_VALUE
