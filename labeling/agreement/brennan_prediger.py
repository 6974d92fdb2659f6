"""Brennan and Prediger's kappa: chance means that every category is equally likely.

    p_a as in `gwet`,   p_e = 1/K,   kappa = (p_a - p_e) / (1 - p_e)

R. L. Brennan, D. J. Prediger (1981), "Coefficient kappa: some uses, misuses, and alternatives",
doi:10.1177/001316448104100307.
"""

import numpy as np

from labeling.agreement import gwet, weights
from labeling.agreement.arrays import Floats
from labeling.agreement.sums import PairSums


def kappa(sums: PairSums) -> Floats:
    observed = gwet.observed_agreement(sums, weights.identity(sums.values))
    if sums.k < 2:
        return np.full_like(observed, np.nan)
    return (observed - 1 / sums.k) / (1 - 1 / sums.k)
