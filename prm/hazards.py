"""From what a PRM says to hazards: by what its number means, then by what the reserve taught of it. Reads no table.

Context, NaN among the scores, cannot be wrong: its hazard is nothing, and a value that falls over it falls once.
"""

import numpy as np

from prm.models import PRM
from prm.selection import platt, semantics
from prm.selection.platt import Calibration
from prm.selection.semantics import UNKNOWN_VALUE, Semantics
from stats.arrays import Floats, Ints


def raw_hazards(prm: PRM, scores: Floats, lengths: Ints, *, first_value: float | None = None) -> Floats:
    """P(wrong | all before right) of every step of traces laid end to end, before calibration."""
    if first_value is None:
        first_value = prm.calibration.get("first_value", UNKNOWN_VALUE)
    found = semantics.scores_to_hazards(
        scores=_fill_context(scores, lengths, first_value),
        starts=np.cumsum(lengths) - lengths,
        semantics=Semantics(prm.semantics),
        first_value=first_value,
    )
    return np.where(np.isnan(scores), 0.0, found)


def calibrated_hazards(prm: PRM, scores: Floats, lengths: Ints) -> Floats:
    """As they are where the reserve was too small to calibrate them."""
    found = platt.apply_calibration(hazards=raw_hazards(prm, scores, lengths), calibration=load_calibration(prm))
    return np.where(np.isnan(scores), 0.0, found)


def load_calibration(prm: PRM) -> Calibration:
    told = prm.calibration
    return Calibration(
        told.get("intercept", 0.0), told.get("slope", 1.0), told.get("n", 0), told.get("is_fitted", False)
    )


def estimate_first_value(prm: PRM, scores: Floats, lengths: Ints) -> float:
    """What the PRM thinks of traces before their first step, by a random sample of them; only a "value" needs it."""
    if Semantics(prm.semantics) is not Semantics.VALUE:
        return UNKNOWN_VALUE
    said = np.flatnonzero(~np.isnan(scores))
    _, first = np.unique(np.repeat(np.arange(len(lengths)), lengths)[said], return_index=True)
    return semantics.mean_first_value(scores=scores, starts=said[first])


def _fill_context(scores: Floats, lengths: Ints, before: float) -> Floats:
    """Context takes the number of the step before it."""
    is_context = np.isnan(scores)
    if not is_context.any():
        return scores
    at = np.where(is_context, -1, np.arange(len(scores)))
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    last = np.maximum.accumulate(at)
    return np.where(last >= starts, scores[np.maximum(last, 0)], before)
