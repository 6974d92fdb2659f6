"""Cohen's kappa of two named raters, plain or weighted, from their table of counts (rows one rater, columns the other).

    p_o = Σ w_kl p_kl,   p_e = Σ w_kl p_k. p_.l,   kappa = (p_o - p_e) / (1 - p_e)

Each rater keeps their own marginals, so it is for pairs of people; over one category it is 0/0.

J. Cohen (1960), doi:10.1177/001316446002000104; weighted: J. Cohen (1968), doi:10.1037/h0026256.
"""

from labeling.agreement.arrays import Floats, divide


def kappa(table: Floats, weight: Floats) -> Floats:
    """`table` is (..., K, K): counts of the pairs of ratings; `weight` (K, K) as in `weights`."""
    n = table.sum(axis=(-2, -1))
    observed = divide((table * weight).sum(axis=(-2, -1)), n)
    rows, columns = table.sum(axis=-1), table.sum(axis=-2)
    together = rows[..., :, None] * columns[..., None, :]
    expected = divide((together * weight).sum(axis=(-2, -1)), n * n)
    return divide(observed - expected, 1 - expected)
