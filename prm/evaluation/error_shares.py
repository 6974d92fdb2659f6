"""Shares of labeled steps that a PRM gets wrong, with intervals by problem.

    missed errors     of the steps labeled wrong, the share with P(wrong) < 0.5
    false alarms      of the steps labeled right, the share with P(wrong) ≥ 0.5
    false confidence  of the steps labeled wrong, the share with P(right) ≥ 0.9: even a small calibration error can hide
                      a quarter of the errors here

Misses and false alarms: J. A. Swets (1988), doi:10.1126/science.3287615.
"""

import numpy as np

from prm.evaluation.labeled_steps import LabeledSteps
from stats import estimation
from stats.arrays import Bools, Floats, divide, sum_by
from stats.estimates import Estimate, Reason
from stats.estimation import Statistic

CONFIDENT = 0.9


def missed_error_share(steps: LabeledSteps) -> Estimate:
    return share_of_steps(steps, is_case=steps.is_wrong, is_counted=steps.p_wrong < 0.5)


def false_alarm_share(steps: LabeledSteps) -> Estimate:
    return share_of_steps(steps, is_case=~steps.is_wrong, is_counted=steps.p_wrong >= 0.5)


def false_confidence_share(steps: LabeledSteps, *, is_case: Bools | None = None) -> Estimate:
    """Return the share among all wrong steps, or among the given ones."""
    is_wrong = steps.is_wrong if is_case is None else steps.is_wrong & is_case
    return share_of_steps(steps, is_case=is_wrong, is_counted=1 - steps.p_wrong >= CONFIDENT)


def share_of_steps(steps: LabeledSteps, *, is_case: Bools, is_counted: Bools) -> Estimate:
    """Of the steps that are a case, return the share that is counted."""
    rows = np.column_stack([is_case & is_counted, is_case]).astype(np.float64)
    sums = sum_by(groups=steps.problems, rows=rows, n_groups=steps.n_problems)
    sample = estimation.sample_from_sums(
        sums,
        copies=np.ones(len(sums), dtype=np.int64),
        is_comparable=sums[:, 1] > 0,
        units=len(steps.p_wrong),
        pairable=int(is_case.sum()),
        nothing=Reason.NO_CASES,
    )
    return estimation.estimate(statistic=Statistic(_share, 0.0, Reason.NO_CASES), sample=sample)


def _share(sums: Floats) -> Floats:
    return divide(sums[..., 0], sums[..., 1])
