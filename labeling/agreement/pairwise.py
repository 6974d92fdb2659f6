"""Pairwise percent agreement: of all pairs of ratings of one unit, the share that says the same.

    Σ_u Σ_k n_uk (n_uk - 1) / Σ_u m_u (m_u - 1)

Pairs are pooled, so a unit with many ratings weighs more; Gwet's p_a gives every unit the same weight and is another
number. Uncorrected for chance: on easy work it is high for raters who never read.

J. L. Fleiss (1971), doi:10.1037/h0031619, eq. 2 (per unit); pooling as in K. Krippendorff (2019), ch. 12.
"""

from labeling.agreement.arrays import Floats, divide
from labeling.agreement.sums import PairSums


def agreement(sums: PairSums) -> Floats:
    return divide(sums.agreeing_pairs, sums.all_pairs)
