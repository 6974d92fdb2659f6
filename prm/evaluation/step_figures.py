"""Figures of labeled steps: does a PRM rank wrong steps above right ones, and how often is it wrong?

    AUC        of all pairs of a wrong and a right step, the share where the wrong one has the higher P(wrong); ties ½
    risk set   only pairs within one stratum (source, index in the trace): the error is always the last labeled step, so
               position by itself would score on the plain AUC
    matched    of those, only pairs whose log characters differ by at most 0.1: length by itself reaches 0.75 on the
               risk set

    missed errors     of the steps labeled wrong, the share with P(wrong) < 0.5
    false alarms      of the steps labeled right, the share with P(wrong) ≥ 0.5
    false confidence  of the steps labeled wrong, the share with P(right) ≥ 0.9: even a small calibration error can hide
                      a quarter of the errors here
    calibration       is a step with P(right) = 0.8 right in eight of ten cases?
                      ECE = Σ over bins b of |Σ_{i in b} (right_i - P(right)_i)| / n,   15 bins of equal width

Intervals leave out one problem at a time. Each pair touches the problem of its wrong step and that of its right step,
so the pairs without problem i are: total - pairs with i's wrong steps - pairs with i's right steps + pairs within i.

J. A. Hanley, B. J. McNeil (1982), doi:10.1148/radiology.143.1.7063747; strata of those still at risk: F. E. Harrell et
al. (1996), doi:10.1002/(SICI)1097-0258(19960229)15:4<361::AID-SIM168>3.0.CO;2-4; misses and false alarms: J. A. Swets
(1988), doi:10.1126/science.3287615; calibration: M. P. Naeini, G. Cooper, M. Hauskrecht (2015),
doi:10.1609/aaai.v29i1.9602.
"""

from dataclasses import dataclass

import numpy as np

from prm.evaluation.labeled_steps import LabeledSteps
from stats import estimation, intervals
from stats.arrays import Bools, Floats, Ints, divide, sum_by
from stats.calibration import BINS
from stats.estimates import Estimate, Interval, Reason, UnitCounts, defined_estimate, undefined_estimate
from stats.estimation import Statistic

MATCHED_WITHIN = 0.1
CONFIDENT = 0.9
_MAX_INDEX = 10_000  # later steps share one stratum
_CELLS = 4_000_000  # of the matrices that compare steps, to bound memory

Pairs = Floats  # (…, 2): pairs in the right order, all pairs


@dataclass(frozen=True)
class _PairCounts:
    """Pairs by step (each pair is counted at both of its steps), and the pairs within one problem."""

    by_step: Pairs
    within: Pairs


def auc(steps: LabeledSteps) -> Estimate:
    return _estimate_auc(steps, _count_by_rank(steps, np.zeros(len(steps.p_wrong), dtype=np.int64)))


def risk_set_auc(steps: LabeledSteps) -> Estimate:
    return _estimate_auc(steps, _count_by_rank(steps, _strata(steps)))


def length_matched_auc(steps: LabeledSteps) -> Estimate:
    return _estimate_auc(steps, _count_in_window(steps, _strata(steps)))


def length_only_auc(steps: LabeledSteps) -> Estimate:
    """The risk-set AUC of log characters in place of scores: a PRM has to be better than this."""
    return risk_set_auc(steps.with_scores(steps.log_characters))


def length_only_matched_auc(steps: LabeledSteps) -> Estimate:
    return length_matched_auc(steps.with_scores(steps.log_characters))


@dataclass(frozen=True)
class PairedDifference:
    """The AUC of one PRM minus that of another on the same pairs, and how many problems have such pairs."""

    n_pairs: int
    n_problems: int
    value: float | None
    interval: Interval | Reason


def length_matched_difference(steps: LabeledSteps, other_p_wrong: Floats) -> PairedDifference:
    """Compare two PRMs on the same pairs: this one minus the other.

    The interval of the difference can exclude 0 although the intervals of both figures overlap.
    """
    strata, other = _strata(steps), steps.with_scores(other_p_wrong)
    counts = _count_in_window(steps, strata)
    ours, theirs = _leave_one_out(steps, counts), _leave_one_out(other, _count_in_window(other, strata))
    if ours is None or theirs is None:
        return PairedDifference(0, 0, None, Reason.NO_CASES)
    (value, without_one), (other_value, other_without_one) = ours, theirs
    difference, without_one = value - other_value, without_one - other_without_one
    interval = intervals.jackknife_interval(value=difference, without_one=without_one, floor=-1.0)
    return PairedDifference(round(counts.by_step[:, 1].sum() / 2), len(without_one), difference, interval)


def _leave_one_out(steps: LabeledSteps, counts: _PairCounts) -> tuple[float, Floats] | None:
    """Return the share of pairs in order, and the same without each problem that has pairs."""
    touched = sum_by(groups=steps.problems, rows=counts.by_step, n_groups=steps.n_problems)
    inside = sum_by(groups=steps.problems, rows=counts.within, n_groups=steps.n_problems) / 2
    total = counts.by_step.sum(axis=0) / 2
    if not total[1]:
        return None
    has_pairs = touched[:, 1] > 0
    left = total - touched[has_pairs] + inside[has_pairs]
    return float(total[0] / total[1]), divide(left[:, 0], left[:, 1])


def _estimate_auc(steps: LabeledSteps, counts: _PairCounts) -> Estimate:
    value, without_one = _leave_one_out(steps, counts) or (None, np.zeros(0))
    n_paired = int((counts.by_step[:, 1] > 0).sum())
    units = UnitCounts(units=len(steps.p_wrong), pairable=n_paired, problems=len(without_one))
    if value is None:
        return undefined_estimate(Reason.NO_CASES, units)
    interval = intervals.jackknife_interval(value=value, without_one=without_one, floor=0.0)
    return defined_estimate(value, units, interval, Reason.NOT_DRAWN)


def _strata(steps: LabeledSteps) -> Ints:
    return steps.sources * _MAX_INDEX + np.minimum(steps.indexes, _MAX_INDEX - 1)


def _count_by_rank(steps: LabeledSteps, strata: Ints) -> _PairCounts:
    if not len(strata):
        return _PairCounts(np.zeros((0, 2)), np.zeros((0, 2)))
    problem_strata = np.unique(np.column_stack([strata, steps.problems]), axis=0, return_inverse=True)[1].ravel()
    return _PairCounts(_rank_pairs(steps, strata), _rank_pairs(steps, problem_strata))


def _rank_pairs(steps: LabeledSteps, groups: Ints) -> Pairs:
    """Count every step's pairs with steps of the other kind in its group, along the sorted scores."""
    order = np.lexsort((steps.p_wrong, groups))
    group, score, wrong = groups[order], steps.p_wrong[order], steps.is_wrong[order].astype(np.float64)
    new_group = np.append(True, group[1:] != group[:-1])
    new_score = new_group | np.append(True, score[1:] != score[:-1])
    right_below, right_all = _count_below_and_all(1 - wrong, new_group, new_score)
    wrong_below, wrong_all = _count_below_and_all(wrong, new_group, new_score)
    in_order = np.where(wrong > 0, right_below, wrong_all - wrong_below)
    result = np.empty((len(order), 2))
    result[order] = np.column_stack([in_order, np.where(wrong > 0, right_all, wrong_all)])
    return result


def _count_below_and_all(ones: Floats, new_group: Bools, new_score: Bools) -> tuple[Floats, Floats]:
    """Count the ones with a lower score in each entry's group, ties counting half; and all ones of the group."""
    tie, group = np.cumsum(new_score) - 1, np.cumsum(new_group) - 1
    per_tie = np.bincount(tie, weights=ones)
    before_tie = (np.cumsum(per_tie) - per_tie)[tie]
    per_group = np.bincount(group, weights=ones)
    before_group = (np.cumsum(per_group) - per_group)[group]
    return before_tie - before_group + per_tie[tie] / 2, per_group[group]


def _count_in_window(steps: LabeledSteps, strata: Ints) -> _PairCounts:
    """Compare every wrong step with every right one of its stratum and of similar length, in blocks."""
    counts = _PairCounts(np.zeros((len(strata), 2)), np.zeros((len(strata), 2)))
    if not len(strata):
        return counts
    order = np.argsort(strata, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(strata[order])) + 1):
        wrong, right = rows[steps.is_wrong[rows]], rows[~steps.is_wrong[rows]]
        if not len(wrong) or not len(right):
            continue
        for block in np.array_split(wrong, max(1, len(wrong) * len(right) // _CELLS)):
            _add_block(steps, block, right, counts)
    return counts


def _add_block(steps: LabeledSteps, wrong: Ints, right: Ints, counts: _PairCounts) -> None:
    distance = np.abs(steps.log_characters[wrong][:, None] - steps.log_characters[right][None, :])
    is_pair = distance <= MATCHED_WITHIN
    in_order = np.heaviside(steps.p_wrong[wrong][:, None] - steps.p_wrong[right][None, :], 0.5) * is_pair
    _add_cells(counts.by_step, wrong, right, (in_order, is_pair))
    same_problem = steps.problems[wrong][:, None] == steps.problems[right][None, :]
    _add_cells(counts.within, wrong, right, (in_order * same_problem, is_pair & same_problem))


def _add_cells(target: Pairs, wrong: Ints, right: Ints, columns: tuple[Floats, Bools]) -> None:
    for column, cells in enumerate(columns):
        target[wrong, column] += cells.sum(axis=1)
        target[right, column] += cells.sum(axis=0)


# --- shares and calibration -------------------------------------------------------------------------------------------


def missed_error_share(steps: LabeledSteps) -> Estimate:
    return share_of_steps(steps, is_case=steps.is_wrong, is_counted=steps.p_wrong < 0.5)


def false_alarm_share(steps: LabeledSteps) -> Estimate:
    return share_of_steps(steps, is_case=~steps.is_wrong, is_counted=steps.p_wrong >= 0.5)


def false_confidence_share(steps: LabeledSteps, *, is_case: Bools | None = None) -> Estimate:
    """Return the share of wrong steps that are confidently rated correct, among all wrong steps or the given ones."""
    is_wrong = steps.is_wrong if is_case is None else steps.is_wrong & is_case
    return share_of_steps(steps, is_case=is_wrong, is_counted=1 - steps.p_wrong >= CONFIDENT)


def share_of_steps(steps: LabeledSteps, *, is_case: Bools, is_counted: Bools) -> Estimate:
    """Return the share of hits among the steps that are cases."""
    rows = np.column_stack([is_case & is_counted, is_case]).astype(np.float64)
    return _estimate_sums(steps, rows, estimation.share_statistic(0, 1), pairable=int(is_case.sum()))


def expected_calibration_error(steps: LabeledSteps) -> Estimate:
    n, p_right = len(steps.p_wrong), 1 - steps.p_wrong
    bins = np.minimum((p_right * BINS).astype(np.int64), BINS - 1)
    rows = np.zeros((n, BINS + 1))
    rows[np.arange(n), bins] = ~steps.is_wrong - p_right
    rows[:, BINS] = 1.0
    return _estimate_sums(steps, rows, Statistic(_mean_gap, 0.0, Reason.NO_CASES), pairable=n)


def _mean_gap(sums: Floats) -> Floats:
    return divide(np.abs(sums[..., :BINS]).sum(axis=-1), sums[..., BINS])


def _estimate_sums(steps: LabeledSteps, rows: Floats, statistic: Statistic, *, pairable: int) -> Estimate:
    """Estimate from rows per step; the last column counts the cases."""
    sums = sum_by(groups=steps.problems, rows=rows, n_groups=steps.n_problems)
    sample = estimation.sample_from_sums(sums, is_comparable=sums[:, -1] > 0, units=len(rows), pairable=pairable)
    return estimation.estimate(statistic=statistic, sample=sample)
