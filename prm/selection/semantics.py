"""The meanings of a PRM's score, and how each one becomes a hazard.

    hazard    P(step right | earlier right):      h_i = 1 - score_i
    value     P(final answer right | prefix) v_i:  h_i = max(0, 1 - v_i / max(v_{i-1}, ε))
    progress  a signed difference, not a probability: it becomes a hazard only by calibration (`platt`)

A PRM does not score v_0, the value before any step. Over sampled solutions the value is a martingale: it neither rises
nor falls on average. So v_0 is estimated as the mean value after the first step (`first_value`).

P. Wang et al. (2024), "Math-Shepherd", arXiv:2312.08935, trains values; H. Lightman et al. (2023), "Let's verify step
by step", arXiv:2305.20050, hazards; A. Setlur et al. (2024), "Rewarding progress", arXiv:2410.08146, progress.
"""

import enum

import numpy as np

from stats.arrays import Floats, Ints

UNKNOWN_VALUE = 0.5
_MIN_VALUE = 1e-6


class InvalidScores(ValueError):
    """The scores cannot mean what the PRM declares."""


class Semantics(enum.StrEnum):
    HAZARD = "hazard"
    VALUE = "value"
    PROGRESS = "progress"


def scores_to_hazards(
    *, scores: Floats, starts: Ints, semantics: Semantics, first_value: float = UNKNOWN_VALUE
) -> Floats:
    """Return the uncalibrated hazard of every step; `starts` are the first steps of the traces."""
    if not np.isfinite(scores).all():
        raise InvalidScores("every score must be a finite number")
    if semantics is Semantics.PROGRESS:
        return np.asarray(
            1 / (1 + np.exp(np.clip(scores, -500, 500)))
        )  # only the order means something until calibration
    if len(scores) and not (scores.min() >= 0 and scores.max() <= 1):
        raise InvalidScores(f'{semantics} scores must be between 0 and 1; declare signed differences as "progress"')
    if semantics is Semantics.HAZARD:
        return np.asarray(1.0 - scores)
    before = np.concatenate([[first_value], scores[:-1]]) if len(scores) else scores
    before[starts] = first_value
    return np.asarray(np.clip(1.0 - scores / np.maximum(before, _MIN_VALUE), 0.0, 1.0), dtype=np.float64)


def mean_first_value(*, scores: Floats, starts: Ints) -> float:
    """Estimate v_0 from a random sample of traces."""
    return float(np.clip(scores[starts], 0.0, 1.0).mean()) if len(starts) else UNKNOWN_VALUE
