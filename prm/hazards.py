"""From a PRM's scores to hazards: by its semantics, then by its calibration on the held-out set.

Context (NaN among the scores) cannot be wrong: its hazard is zero, and a value that falls over it falls only once.
"""

import numpy as np

from prm.models import PRM
from prm.selection import platt, semantics
from prm.selection.platt import Calibration
from prm.selection.semantics import UNKNOWN_VALUE, Semantics
from stats.arrays import Floats, Ints


def raw_hazards(prm: PRM, scores: Floats, lengths: Ints, *, first_value: float | None = None) -> Floats:
    """Return P(wrong | all before right) of every step before calibration; the steps of all traces are end to end."""
    if first_value is None:
        first_value = prm.calibration.get("first_value", UNKNOWN_VALUE)
    hazards = semantics.scores_to_hazards(
        scores=_fill_context(scores, lengths, first_value),
        starts=np.cumsum(lengths) - lengths,
        semantics=Semantics(prm.semantics),
        first_value=first_value,
    )
    return np.where(np.isnan(scores), 0.0, hazards)


def calibrated_hazards(prm: PRM, scores: Floats, lengths: Ints) -> Floats:
    """Return the hazards as calibrated, or raw if the held-out set was too small to calibrate them."""
    stored = prm.calibration
    calibration = Calibration(
        stored.get("intercept", 0.0), stored.get("slope", 1.0), stored.get("n", 0), stored.get("is_fitted", False)
    )
    hazards = platt.apply_calibration(hazards=raw_hazards(prm, scores, lengths), calibration=calibration)
    return np.where(np.isnan(scores), 0.0, hazards)


def estimate_first_value(prm: PRM, scores: Floats, lengths: Ints) -> float:
    """Estimate the value before the first step from a random sample of traces; only "value" semantics needs it."""
    if Semantics(prm.semantics) is not Semantics.VALUE:
        return UNKNOWN_VALUE
    scored = np.flatnonzero(~np.isnan(scores))
    _, first = np.unique(np.repeat(np.arange(len(lengths)), lengths)[scored], return_index=True)
    return semantics.mean_first_value(scores=scores, starts=scored[first])


def _fill_context(scores: Floats, lengths: Ints, first_value: float) -> Floats:
    """Give each context step the score of the step before it."""
    is_context = np.isnan(scores)
    if not is_context.any():
        return scores
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    last_scored = np.maximum.accumulate(np.where(is_context, -1, np.arange(len(scores))))
    return np.where(last_scored >= starts, scores[np.maximum(last_scored, 0)], first_value)
