"""Platt's calibration: a logistic line that maps a PRM's hazards to observed error rates.

    h' = σ(a + b logit(h)),  a and b by maximum likelihood with Platt's softened targets

Fitted only on the held-out set, and only from 100 labeled traces on: actively selected labels are a biased sample. With
fewer traces the hazards stay uncalibrated.

J. C. Platt (1999), "Probabilistic outputs for support vector machines"; Newton's method as in H.-T. Lin, C.-J. Lin,
R. C. Weng (2007), doi:10.1007/s10994-007-5018-6.
"""

from dataclasses import dataclass

import numpy as np

from stats.arrays import Bools, Floats

MIN_TRACES = 100


@dataclass(frozen=True)
class Calibration:
    """`is_fitted` is false for the identity."""

    intercept: float = 0.0
    slope: float = 1.0
    n_traces: int = 0
    is_fitted: bool = False


def fit_calibration(*, hazards: Floats, is_wrong: Bools, n_traces: int) -> Calibration:
    """Fit to the steps of labeled held-out traces, up to and including each first error."""
    if n_traces < MIN_TRACES or is_wrong.all() or not is_wrong.any():
        return Calibration(n_traces=n_traces)
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
    return Calibration(float(line[0]), float(line[1]), n_traces, True)


def apply_calibration(*, hazards: Floats, calibration: Calibration) -> Floats:
    if not calibration.is_fitted:
        return hazards
    return _sigmoid(calibration.intercept + calibration.slope * logit(hazards))


def logit(p: Floats) -> Floats:
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(p) - np.log1p(-p))


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -500, 500))))
