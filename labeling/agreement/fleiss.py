"""Fleiss' kappa: agreement beyond what the pooled shares of the categories would give by chance.

    p_a as in `gwet`,   π_k = mean of n_uk / m_u over units with m ≥ 2
    p_e = Σ π_k²,   kappa = (p_a - p_e) / (1 - p_e)

With two raters it is Scott's pi. Fleiss has the same number of raters for every unit; here numbers may differ, each
pairable unit weighs one, and a unit with one rating changes nothing. Over one category it is 0/0.

J. L. Fleiss (1971), "Measuring nominal scale agreement among many raters", doi:10.1037/h0031619.
"""

from labeling.agreement import gwet, weights
from labeling.agreement.arrays import Floats, divide
from labeling.agreement.sums import PairSums


def kappa(sums: PairSums) -> Floats:
    observed = gwet.observed_agreement(sums, weights.identity(sums.values))
    together = sums.unit_pairs.sum(axis=-1)
    shares = divide(together, together.sum(axis=-1, keepdims=True))
    expected = (shares**2).sum(axis=-1)
    return divide(observed - expected, 1 - expected)
