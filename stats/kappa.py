"""Cohen's kappa of two named raters, plain or weighted, from their table of counts (rows one rater, columns the other).

    p_o = Σ w_kl p_kl,   p_e = Σ w_kl p_k. p_.l,   kappa = (p_o - p_e) / (1 - p_e)

Each rater keeps their own marginals, so it is for pairs of people; over one category it is 0/0.

J. Cohen (1960), doi:10.1177/001316446002000104; weighted: J. Cohen (1968), doi:10.1037/h0026256.
"""

import numpy as np

from stats import ac1, weights
from stats.arrays import Floats, divide
from stats.rating_patterns import PairSums


def cohen_kappa(table: Floats, weight: Floats) -> Floats:
    """`table` is (..., K, K): counts of the pairs of ratings; `weight` (K, K) as in `weights`."""
    n = table.sum(axis=(-2, -1))
    observed = divide((table * weight).sum(axis=(-2, -1)), n)
    rows, columns = table.sum(axis=-1), table.sum(axis=-2)
    together = rows[..., :, None] * columns[..., None, :]
    expected = divide((together * weight).sum(axis=(-2, -1)), n * n)
    return divide(observed - expected, 1 - expected)


# Fleiss' kappa: agreement beyond what the pooled shares of the categories would give by chance.


def fleiss_kappa(sums: PairSums) -> Floats:
    observed = ac1.observed_agreement(sums, weights.identity(sums.values))
    together = sums.unit_pairs.sum(axis=-1)
    shares = divide(together, together.sum(axis=-1, keepdims=True))
    expected = (shares**2).sum(axis=-1)
    return divide(observed - expected, 1 - expected)


# Brennan and Prediger's kappa: chance means that every category is equally likely.


def brennan_prediger_kappa(sums: PairSums) -> Floats:
    observed = ac1.observed_agreement(sums, weights.identity(sums.values))
    if sums.k < 2:
        return np.full_like(observed, np.nan)
    return (observed - 1 / sums.k) / (1 - 1 / sums.k)
