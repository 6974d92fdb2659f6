"""Expected calibration error: is a step with P(right) = 0.8 right in eight of ten cases? With an interval by problem.

    ECE = Σ over bins b of |Σ_{i in b} (right_i - P(right)_i)| / n,   15 bins of equal width

M. P. Naeini, G. Cooper, M. Hauskrecht (2015), doi:10.1609/aaai.v29i1.9602.
"""

import numpy as np

from prm.evaluation.labeled_steps import LabeledSteps
from stats import estimation
from stats.arrays import Floats, divide, sum_by
from stats.calibration import BINS
from stats.estimates import Estimate, Reason
from stats.estimation import Statistic


def expected_calibration_error(steps: LabeledSteps) -> Estimate:
    n, p_right = len(steps.p_wrong), 1 - steps.p_wrong
    bins = np.minimum((p_right * BINS).astype(np.int64), BINS - 1)
    rows = np.zeros((n, BINS + 1))
    rows[np.arange(n), bins] = ~steps.is_wrong - p_right
    rows[:, BINS] = 1.0
    sums = sum_by(groups=steps.problems, rows=rows, n_groups=steps.n_problems)
    sample = estimation.sample_from_sums(
        sums,
        copies=np.ones(len(sums), dtype=np.int64),
        is_comparable=sums[:, BINS] > 0,
        units=n,
        pairable=n,
        nothing=Reason.NO_CASES,
    )
    return estimation.estimate(statistic=Statistic(_mean_gap, 0.0, Reason.NO_CASES), sample=sample)


def _mean_gap(sums: Floats) -> Floats:
    return divide(np.abs(sums[..., :BINS]).sum(axis=-1), sums[..., BINS])
