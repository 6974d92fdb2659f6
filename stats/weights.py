"""Weights of partial agreement between places on a scale: 1 on the diagonal, less with distance.

    identity  [k = l]                     linear     1 - |v_k - v_l| / (v_max - v_min)
    quadratic 1 - (v_k - v_l)² / (v_max - v_min)²
    ordinal   1 - M_kl / M_max with M_kl = C(|k - l| + 1, 2), by rank alone

K. L. Gwet (2014), "Handbook of Inter-Rater Reliability", 4th ed., ch. 3; J. Cohen (1968), doi:10.1037/h0026256.
"""

from collections.abc import Sequence

import numpy as np

from stats.arrays import Floats


def identity(values: Sequence[float]) -> Floats:
    return np.eye(len(values), dtype=np.float64)


def linear(values: Sequence[float]) -> Floats:
    return 1.0 - relative_distances(values)


def quadratic(values: Sequence[float]) -> Floats:
    return 1.0 - relative_distances(values) ** 2


def ordinal(values: Sequence[float]) -> Floats:
    ranks = np.argsort(np.argsort(values))
    apart = np.abs(ranks[:, None] - ranks[None, :])
    between: Floats = apart * (apart + 1) / 2.0
    return 1.0 - between / max(float(between.max(initial=0.0)), 1.0)


def relative_distances(values: Sequence[float]) -> Floats:
    """Distances as shares of the whole scale; a scale of one value has none."""
    places = np.array(values, dtype=np.float64)
    places /= float(np.abs(places).max(initial=0.0)) or 1.0  # two huge numbers may lie further apart than a float holds
    apart = np.abs(places[:, None] - places[None, :])
    widest = float(apart.max(initial=0.0))
    return apart / widest if widest > 0 else apart
