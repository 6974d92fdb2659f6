"""Does a PRM rank wrong steps above right ones? AUC, risk-set AUC, and the length-matched form that claims rest on.

    AUC        of all pairs of a wrong and a right step, the share where the wrong one has the higher P(wrong); ties ½
    risk set   only pairs within one stratum (source, index in the trace): the error is always the last labeled step, so
               position by itself would score on the plain AUC
    matched    of those, only pairs whose log characters differ by at most 0.1: length by itself reaches 0.75 on the
               risk set

Intervals leave out one problem at a time. Each pair touches the problem of its wrong step and that of its right step,
so the pairs without problem i are: total - pairs with i's wrong steps - pairs with i's right steps + pairs within i.

J. A. Hanley, B. J. McNeil (1982), doi:10.1148/radiology.143.1.7063747; strata of those still at risk: F. E. Harrell et
al. (1996), doi:10.1002/(SICI)1097-0258(19960229)15:4<361::AID-SIM168>3.0.CO;2-4.
"""

from dataclasses import dataclass

import numpy as np

from prm.evaluation.labeled_steps import LabeledSteps
from stats import intervals
from stats.arrays import Bools, Floats, Ints, divide, sum_by
from stats.estimates import Estimate, Interval, Reason, UnitCounts, undefined_estimate

MATCHED_WITHIN = 0.1
_MAX_INDEX = 10_000  # later steps share one stratum
_CELLS = 4_000_000  # of the matrices that compare steps, to bound memory

Pairs = Floats  # (…, 2): pairs in the right order, all pairs


@dataclass(frozen=True)
class _PairCounts:
    """Pairs by step (each pair counted at both of its steps), and the part of them within one problem."""

    by_step: Pairs
    within: Pairs


def auc(steps: LabeledSteps) -> Estimate:
    return _estimate(steps, _count_by_rank(steps, np.zeros(len(steps.p_wrong), dtype=np.int64)))


def risk_set_auc(steps: LabeledSteps) -> Estimate:
    return _estimate(steps, _count_by_rank(steps, _strata(steps)))


def length_matched_auc(steps: LabeledSteps) -> Estimate:
    return _estimate(steps, _count_in_window(steps, _strata(steps)))


def length_only_auc(steps: LabeledSteps) -> Estimate:
    """The risk-set AUC of log characters in place of scores: a PRM has to be better than this."""
    return risk_set_auc(steps.with_scores(steps.log_characters))


def length_only_matched_auc(steps: LabeledSteps) -> Estimate:
    return length_matched_auc(steps.with_scores(steps.log_characters))


def length_matched_difference(steps: LabeledSteps, other_p_wrong: Floats) -> Interval | Reason:
    """Compare two PRMs on the same pairs: this one minus the other.

    The interval of the difference can exclude 0 although the intervals of both figures overlap.
    """
    strata, other = _strata(steps), steps.with_scores(other_p_wrong)
    ours, theirs = (_leave_one_out(each, _count_in_window(each, strata)) for each in (steps, other))
    if ours is None or theirs is None:
        return Reason.NO_CASES
    return _jackknife_interval(ours.value - theirs.value, ours.without_one - theirs.without_one, floor=-1.0)


@dataclass(frozen=True)
class _LeaveOneOut:
    value: float
    without_one: Floats


def _leave_one_out(steps: LabeledSteps, counts: _PairCounts) -> _LeaveOneOut | None:
    """Return the share of pairs in order, and the same without each problem that has pairs."""
    touched = sum_by(groups=steps.problems, rows=counts.by_step, n_groups=steps.n_problems)
    inside = sum_by(groups=steps.problems, rows=counts.within, n_groups=steps.n_problems) / 2
    total = counts.by_step.sum(axis=0) / 2
    if not total[1]:
        return None
    has_pairs = touched[:, 1] > 0
    left = total - touched[has_pairs] + inside[has_pairs]
    return _LeaveOneOut(float(total[0] / total[1]), divide(left[:, 0], left[:, 1]))


def _jackknife_interval(value: float, without_one: Floats, *, floor: float) -> Interval | Reason:
    copies = np.ones(len(without_one), dtype=np.int64)
    return intervals.jackknife_interval(value=value, without_one=without_one, copies=copies, floor=floor)


def _estimate(steps: LabeledSteps, counts: _PairCounts) -> Estimate:
    result = _leave_one_out(steps, counts)
    n_problems = 0 if result is None else len(result.without_one)
    n_paired = int((counts.by_step[:, 1] > 0).sum())
    units = UnitCounts(units=len(steps.p_wrong), pairable=n_paired, problems=n_problems)
    if result is None:
        return undefined_estimate(Reason.NO_CASES, units)
    interval = _jackknife_interval(result.value, result.without_one, floor=0.0)
    return Estimate(
        value=result.value,
        counts=units,
        interval=interval if isinstance(interval, Interval) else None,
        interval_reason=interval if isinstance(interval, Reason) else None,
        bootstrap_reason=Reason.NOT_DRAWN,
    )


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
    above = steps.p_wrong[wrong][:, None] - steps.p_wrong[right][None, :]
    in_order = ((above > 0) + 0.5 * (above == 0)) * is_pair
    same_problem = steps.problems[wrong][:, None] == steps.problems[right][None, :]
    for target, mask in ((counts.by_step, 1.0), (counts.within, same_problem)):
        cells = np.stack([in_order * mask, is_pair * mask], axis=2)
        target[wrong] += cells.sum(axis=1)
        target[right] += cells.sum(axis=0)
