"""From hazards to the first error: the chance to come to a step without one, and where the first one is.

    S_i = Π_{j ≤ i} (1 - h_j),   P(E = i) = S_{i-1} h_i,   P(none) = S_T

Discrete-time survival: D. R. Cox (1972), doi:10.1111/j.2517-6161.1972.tb00899.x.
"""

import numpy as np

from prm.selection.pool import Pool
from stats.arrays import Floats

_CERTAIN = 1 - 1e-9


def still_right_before(pool: Pool) -> Floats:
    """S_{i-1} of every step."""
    passed = np.log1p(-np.minimum(pool.hazards, _CERTAIN))
    before = np.cumsum(passed) - passed
    return np.exp(np.minimum(before - before[pool.starts][pool.traces], 0.0)) if pool.n else passed


def first_error_probabilities(pool: Pool) -> Floats:
    """P(E = i) of every step."""
    return still_right_before(pool) * pool.hazards


def no_error_probabilities(pool: Pool) -> Floats:
    """P(none) of every trace: what the steps leave over, so that all places add up to 1."""
    return np.clip(1.0 - pool.per_trace(first_error_probabilities(pool)), 0.0, 1.0)
