"""Gwet's AC1 and AC2: chance-corrected agreement that does not collapse where one category prevails.

    p_a = mean over units with m ≥ 2 of Σ_k n_uk (r*_uk - 1) / (m_u (m_u - 1)),   r*_uk = Σ_l w_kl n_ul
    π_k = mean over units with m ≥ 1 of n_uk / m_u,   p_e = T_w Σ π_k (1 - π_k) / (K (K - 1)),   T_w = Σ w_kl
    AC  = (p_a - p_e) / (1 - p_e)

AC1 has identity weights. It is kind to raters who disagree on a rare category: read it beside alpha, never alone.

K. L. Gwet (2008), "Computing inter-rater reliability and its variance in the presence of high agreement",
doi:10.1348/000711006X126600; AC2 in the "Handbook of Inter-Rater Reliability", 4th ed. (2014).
"""

import numpy as np

from stats import weights
from stats.arrays import Floats, divide
from stats.rating_patterns import PairSums


def gwet_ac1(sums: PairSums) -> Floats:
    return gwet_ac2(sums, weights.identity(sums.values))


def gwet_ac2(sums: PairSums, weight: Floats) -> Floats:
    if sums.k < 2:
        return np.where(sums.all_pairs > 0, 1.0, np.nan)
    observed = observed_agreement(sums, weight)
    shares = mean_shares(sums)
    spread = (shares * (1 - shares)).sum(axis=-1)
    expected = float(weight.sum()) * spread / (sums.k * (sums.k - 1))
    return divide(observed - expected, 1 - expected)


def observed_agreement(sums: PairSums, weight: Floats) -> Floats:
    """p_a: the mean over pairable units of the weighted share of agreeing pairs."""
    pairs = sums.unit_pairs
    return divide((pairs * weight).sum(axis=(-2, -1)), pairs.sum(axis=(-2, -1)))


def mean_shares(sums: PairSums) -> Floats:
    """π: how common each value is, every rated unit weighing one."""
    return divide(sums.shares, sums.shares.sum(axis=-1, keepdims=True))
