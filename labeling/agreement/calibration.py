"""Expected calibration error: how far stated confidence lies from the share that was right.

    ECE = Σ over bins b of |b|/n · |right share of b - mean confidence of b|,   bins of equal width

M. P. Naeini, G. Cooper, M. Hauskrecht (2015), doi:10.1609/aaai.v29i1.9602; C. Guo et al. (2017), arXiv:1706.04599.
"""

import numpy as np

from labeling.agreement.arrays import Bools, Floats

BINS = 15


def expected_error(*, confidences: Floats, is_right: Bools, bins: int = BINS) -> float:
    """NaN where there is nothing to be calibrated on."""
    if not len(confidences):
        return float("nan")
    place = np.minimum((confidences * bins).astype(np.int64), bins - 1)
    gap = np.bincount(place, weights=is_right.astype(np.float64) - confidences, minlength=bins)
    return float(np.abs(gap).sum() / len(confidences))
