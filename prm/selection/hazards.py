"""How a PRM's scores become hazards, P(step wrong | earlier right): by their meaning, then by calibration.

    hazard    P(step right | earlier right):      h_i = 1 - score_i
    value     P(final answer right | prefix) v_i:  h_i = max(0, 1 - v_i / max(v_{i-1}, ε))
    progress  a signed difference, not a probability: it becomes a hazard only by calibration

A PRM does not score v_0, the value before any step. Over sampled solutions the value is a martingale: it neither rises
nor falls on average. So v_0 is estimated as the mean value after the first step (`first_value`).

Platt's calibration is a logistic line that maps hazards to observed error rates:

    h' = σ(a + b logit(h)),  a and b by maximum likelihood with Platt's softened targets

It is fitted only on the held-out set, and only from 100 labeled traces on: actively selected labels are a biased
sample. With fewer traces the hazards stay uncalibrated.

In all functions the steps of all traces are end to end, and NaN marks the score of context. Context cannot be wrong:
its hazard is zero, and a value that falls over it falls only once. `calibration` is what is stored with a PRM.

P. Wang et al. (2024), "Math-Shepherd", arXiv:2312.08935, trains values; H. Lightman et al. (2023), "Let's verify step
by step", arXiv:2305.20050, hazards; A. Setlur et al. (2024), "Rewarding progress", arXiv:2410.08146, progress. J. C.
Platt (1999), "Probabilistic outputs for support vector machines"; Newton's method as in H.-T. Lin, C.-J. Lin, R. C.
Weng (2007), doi:10.1007/s10994-007-5018-6.
"""

import enum
from collections.abc import Mapping
from typing import Any

import numpy as np

from stats.arrays import Bools, Floats, Ints

UNKNOWN_VALUE = 0.5
MIN_TRACES = 100
_MIN_VALUE = 1e-6


class InvalidScores(ValueError):
    """The scores do not fit the semantics that the PRM declares."""


class Semantics(enum.StrEnum):
    HAZARD = "hazard"
    VALUE = "value"
    PROGRESS = "progress"


def raw_hazards(scores: Floats, lengths: Ints, semantics: str, calibration: Mapping[str, Any]) -> Floats:
    """Return the hazard of every step before calibration."""
    first_value = calibration.get("first_value", UNKNOWN_VALUE)
    known = _fill_context(scores, lengths, first_value)
    if not np.isfinite(known).all():
        raise InvalidScores("every score must be a finite number")
    if semantics == Semantics.PROGRESS:
        hazards = _sigmoid(-known)  # only the order means something until calibration
    elif len(known) and not (known.min() >= 0 and known.max() <= 1):
        raise InvalidScores(f'{semantics} scores must be between 0 and 1; declare signed differences as "progress"')
    elif semantics == Semantics.HAZARD:
        hazards = 1.0 - known
    else:
        before = np.roll(known, 1)
        before[(np.cumsum(lengths) - lengths)[lengths > 0]] = first_value
        hazards = np.clip(1.0 - known / np.maximum(before, _MIN_VALUE), 0.0, 1.0)
    return np.where(np.isnan(scores), 0.0, hazards)


def calibrated_hazards(scores: Floats, lengths: Ints, semantics: str, calibration: Mapping[str, Any]) -> Floats:
    """Return the hazards as calibrated, or raw if the held-out set was too small to calibrate them."""
    hazards = apply_calibration(raw_hazards(scores, lengths, semantics, calibration), calibration)
    return np.where(np.isnan(scores), 0.0, hazards)


def estimate_first_value(scores: Floats, lengths: Ints, semantics: str) -> float:
    """Estimate v_0 from a random sample of traces; only "value" semantics needs it."""
    scored = np.flatnonzero(~np.isnan(scores))
    if semantics != Semantics.VALUE or not len(scored):
        return UNKNOWN_VALUE
    _, first = np.unique(np.repeat(np.arange(len(lengths)), lengths)[scored], return_index=True)
    return float(np.clip(scores[scored[first]], 0.0, 1.0).mean())


def _fill_context(scores: Floats, lengths: Ints, first_value: float) -> Floats:
    """Give each context step the score of the step before it."""
    is_context = np.isnan(scores)
    if not is_context.any():
        return scores
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    last_scored = np.maximum.accumulate(np.where(is_context, -1, np.arange(len(scores))))
    return np.where(last_scored >= starts, scores[np.maximum(last_scored, 0)], first_value)


# --- Platt's calibration --------------------------------------------------------------------------------------------


def fit_calibration(*, hazards: Floats, is_wrong: Bools, n_traces: int) -> dict[str, Any]:
    """Fit to the steps of labeled held-out traces, up to and including each first error."""
    if n_traces < MIN_TRACES or is_wrong.all() or not is_wrong.any():
        return {"intercept": 0.0, "slope": 1.0, "n": n_traces, "is_fitted": False}
    design = np.column_stack([np.ones(len(hazards)), logit(hazards)])
    wrong, right = float(is_wrong.sum()), float((~is_wrong).sum())
    target = np.where(is_wrong, (wrong + 1) / (wrong + 2), 1 / (right + 2))
    line = np.array([0.0, 1.0])
    for _ in range(100):
        p = _sigmoid(design @ line)
        gradient = design.T @ (target - p)
        curvature = (design * (p * (1 - p))[:, None]).T @ design + 1e-9 * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        line = line + step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-12))
        if np.abs(gradient).max() < 1e-9 * len(hazards):
            break
    return {"intercept": float(line[0]), "slope": float(line[1]), "n": n_traces, "is_fitted": True}


def apply_calibration(hazards: Floats, calibration: Mapping[str, Any]) -> Floats:
    if not calibration.get("is_fitted"):
        return hazards
    return _sigmoid(calibration["intercept"] + calibration["slope"] * logit(hazards))


def logit(p: Floats) -> Floats:
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(p) - np.log1p(-p))


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -500, 500))))
