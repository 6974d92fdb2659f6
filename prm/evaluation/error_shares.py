"""Shares of labelled steps, with intervals by problem: what a PRM lets pass, and what it is sure of and wrong.

    over-credit       of the steps that people call wrong, the share with P(wrong) < ½
    over-blame        of the steps that people call right, the share with P(wrong) ≥ ½
    false confidence  of the steps that people call wrong, the share with P(right) ≥ .9: a small calibration error can
                      hide a quarter of them

Misses and false alarms: J. A. Swets (1988), doi:10.1126/science.3287615.
"""

import numpy as np

from prm.evaluation.labeled_steps import LabeledSteps
from stats import estimation
from stats.arrays import Bools, Floats, divide, sum_by
from stats.estimates import Estimate, Reason
from stats.estimation import Statistic

_SURE = 0.9


def missed_error_share(steps: LabeledSteps, *, level: float = 0.95) -> Estimate:
    return share_of_steps(steps, is_case=steps.is_wrong, is_counted=steps.p_wrong < 0.5, level=level)


def false_alarm_share(steps: LabeledSteps, *, level: float = 0.95) -> Estimate:
    return share_of_steps(steps, is_case=~steps.is_wrong, is_counted=steps.p_wrong >= 0.5, level=level)


def false_confidence_share(steps: LabeledSteps, *, level: float = 0.95) -> Estimate:
    return share_of_steps(steps, is_case=steps.is_wrong, is_counted=1 - steps.p_wrong >= _SURE, level=level)


def share_of_steps(steps: LabeledSteps, *, is_case: Bools, is_counted: Bools, level: float = 0.95) -> Estimate:
    """Of the steps that are a case, the share that is counted."""
    rows = np.column_stack([is_case & is_counted, is_case]).astype(np.float64)
    summed = sum_by(groups=steps.problems, rows=rows, n_groups=steps.n_problems)
    cases = int(is_case.sum())
    sample = estimation.sample_from_sums(
        summed,
        copies=np.ones(len(summed), dtype=np.int64),
        is_comparable=summed[:, 1] > 0,
        units=len(steps.p_wrong),
        pairable=cases,
        nothing=Reason.NO_CASES,
    )
    return estimation.estimate(statistic=Statistic(_share, 0.0, Reason.NO_CASES), sample=sample, level=level)


def _share(sums: Floats) -> Floats:
    return divide(sums[..., 0], sums[..., 1])
