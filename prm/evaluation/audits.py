"""Figures that show a PRM being right for the wrong reason, each with the value at which it is an alarm.

    last-step ratio  P(the lowest score is the last step | answer wrong) / mean(1/n): far above 1 the PRM has collapsed
                     to an outcome model (1.60 for one that has; alarm above 1.5)
    outcome slope    coefficient of "answer right" in logit(score), the people's label of the step being held fixed:
                     above 0 the PRM reads the outcome out of the trace
    length drift     corr(score, log characters) among what was served, minus the same in the pool: a loop that feeds
                     on length (alarm beyond .2)

Z. Zhang et al. (2025), "The lessons of developing process reward models", arXiv:2501.07301 (drift to outcome);
R. Geirhos et al. (2020), "Shortcut learning in deep neural networks", doi:10.1038/s42256-020-00257-z.
"""

from dataclasses import dataclass

import numpy as np

from labeling.agreement.arrays import Bools, Floats, Ints
from prm.selection.platt import logit

_LAST_STEP_ALARM, _DRIFT_ALARM = 1.5, 0.2


@dataclass(frozen=True)
class Audit:
    """`value` is None where there was nothing to look at."""

    value: float | None
    n: int
    is_alarming: bool


def last_step_ratio(*, p_wrong: Floats, lengths: Ints, is_answer_right: Bools) -> Audit:
    """Steps of traces laid end to end. The last of equally low steps counts as the lowest."""
    starts = np.cumsum(lengths) - lengths
    looked_at = np.flatnonzero(~is_answer_right & (lengths > 1))
    if not len(looked_at):
        return Audit(None, 0, False)
    is_last = [
        p_wrong[starts[trace] + lengths[trace] - 1] >= p_wrong[starts[trace] : starts[trace] + lengths[trace]].max()
        for trace in looked_at
    ]
    ratio = float(np.mean(is_last) / np.mean(1 / lengths[looked_at]))
    return Audit(ratio, len(looked_at), ratio > _LAST_STEP_ALARM)


def outcome_slope(*, p_wrong: Floats, is_wrong: Bools, is_answer_right: Bools) -> Audit:
    """One entry per labelled step. The alarm needs the slope to be two standard errors above 0."""
    design = np.column_stack([np.ones(len(p_wrong)), ~is_wrong, is_answer_right]).astype(np.float64)
    if len(p_wrong) < 10 or np.linalg.matrix_rank(design) < 3:
        return Audit(None, len(p_wrong), False)
    scores = -logit(p_wrong)
    found = np.linalg.lstsq(design, scores, rcond=None)[0]
    variance = ((scores - design @ found) ** 2).sum() / (len(scores) - 3)
    error = float(np.sqrt(variance * np.linalg.inv(design.T @ design)[2, 2]))
    slope = float(found[2])
    return Audit(slope, len(scores), slope > 2 * error)


def length_drift(
    *, pool_p_wrong: Floats, pool_log_characters: Floats, served_p_wrong: Floats, served_log_characters: Floats
) -> Audit:
    in_pool = _correlation(pool_p_wrong, pool_log_characters)
    among_served = _correlation(served_p_wrong, served_log_characters)
    if in_pool is None or among_served is None:
        return Audit(None, len(served_p_wrong), False)
    drift = among_served - in_pool
    return Audit(drift, len(served_p_wrong), abs(drift) > _DRIFT_ALARM)


def _correlation(first: Floats, second: Floats) -> float | None:
    if len(first) < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])
