"""Krippendorff's alpha for any number of raters, missing ratings allowed.

    o_ck = Σ_{u: m_u ≥ 2} n_uc (n_uk - [c = k]) / (m_u - 1),   n_c = Σ_k o_ck,   n = Σ_c n_c
    alpha = 1 - (n - 1) Σ o_ck d²(c, k) / Σ n_c n_k d²(c, k)

    nominal  d² = [c ≠ k]
    ordinal  d² = (Σ_{g = c..k} n_g - (n_c + n_k) / 2)², that is, the squared distance of mid-ranks
    interval d² = (c - k)²
    ratio    d² = ((c - k) / (c + k))²

A unit with one rating meets no other and changes nothing. Where all ratings are of one category alpha is 0/0.

K. Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", https://repository.upenn.edu/asc_papers/43;
(2019) "Content Analysis", 4th ed., ch. 12, doi:10.4135/9781071878781. The ordinal distance is that of the book; some
packages print another number under the same name.
"""

import numpy as np

from stats import weights
from stats.arrays import Floats, divide
from stats.rating_patterns import PairSums


def nominal(sums: PairSums) -> Floats:
    return _alpha(sums, 1.0 - np.eye(sums.k))


def ordinal(sums: PairSums) -> Floats:
    marginals = sums.coincidences.sum(axis=-1)
    middles = marginals.cumsum(axis=-1) - marginals / 2
    return _alpha(sums, (middles[..., :, None] - middles[..., None, :]) ** 2)


def interval(sums: PairSums) -> Floats:
    return _alpha(
        sums, weights.relative_distances(sums.values) ** 2
    )  # as shares of the scale: in which unit it is does not matter


def ratio(sums: PairSums) -> Floats:
    values = np.array(sums.values)
    together = values[:, None] + values[None, :]
    return _alpha(sums, np.nan_to_num(divide(values[:, None] - values[None, :], together)) ** 2)


def _alpha(sums: PairSums, distance: Floats) -> Floats:
    coincidences = sums.coincidences
    marginals = coincidences.sum(axis=-1)
    n = marginals.sum(axis=-1)
    observed = (coincidences * distance).sum(axis=(-2, -1))
    expected = (marginals[..., :, None] * marginals[..., None, :] * distance).sum(axis=(-2, -1))
    # Marginals are whole numbers up to rounding, so that two of them tell whether anything varied, however near to each
    # other the two values are.
    is_varied = ((marginals > 0.5).sum(axis=-1) > 1) & (expected > 0)
    ratio = np.full(expected.shape, np.nan)
    np.divide((n - 1) * observed, expected, out=ratio, where=is_varied)
    return 1.0 - ratio
