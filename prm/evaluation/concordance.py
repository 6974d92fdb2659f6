"""Does a PRM rank wrong steps above right ones? AUC, risk-set AUC, and the length-matched form that claims rest on.

    AUC        of all pairs of a wrong and a right step, the share where the wrong one has the higher P(wrong); ties ½
    risk set   only pairs of one stratum (source, index within the trace): the error is always last among labelled
               steps, so position alone would score on the plain AUC
    matched    of those, only pairs whose log characters differ by at most 0.1: length alone reaches .75 on the risk set

Intervals leave out one problem at a time. Each pair touches the problem of its wrong and of its right step, so what is
left without problem i is total - pairs with i's wrong steps - pairs with i's right steps + pairs within i.

J. A. Hanley, B. J. McNeil (1982), doi:10.1148/radiology.143.1.7063747; strata of those still at risk: F. E. Harrell et
al. (1996), doi:10.1002/(SICI)1097-0258(19960229)15:4<361::AID-SIM168>3.0.CO;2-4.
"""

import numpy as np

from prm.evaluation.labeled_steps import LabeledSteps
from stats import intervals
from stats.arrays import Bools, Floats, Ints, divide, sum_by
from stats.estimates import Estimate, Interval, Reason, UnitCounts, undefined_estimate

MATCHED_WITHIN = 0.1
_LONGEST = 10_000  # steps of a trace that strata tell apart
_CELLS = 4_000_000

Pairs = Floats  # (…, 2): pairs in the right order, all pairs


def auc(steps: LabeledSteps, *, level: float = 0.95) -> Estimate:
    return _estimate(steps, _by_rank(steps, np.zeros(len(steps.p_wrong), dtype=np.int64)), level)


def risk_set_auc(steps: LabeledSteps, *, level: float = 0.95) -> Estimate:
    return _estimate(steps, _by_rank(steps, _strata(steps)), level)


def length_matched_auc(steps: LabeledSteps, *, level: float = 0.95) -> Estimate:
    return _estimate(steps, _by_window(steps, _strata(steps)), level)


def length_only_auc(steps: LabeledSteps, *, level: float = 0.95) -> Estimate:
    """The risk-set AUC of a "PRM" that knows nothing but log characters: what the real one has to be better than."""
    return risk_set_auc(steps.put(steps.log_characters), level=level)


def length_only_matched_auc(steps: LabeledSteps, *, level: float = 0.95) -> Estimate:
    return length_matched_auc(steps.put(steps.log_characters), level=level)


def length_matched_difference(steps: LabeledSteps, before: Floats, *, level: float = 0.95) -> Interval | Reason:
    """Of this PRM minus another on the very same pairs: both intervals may overlap where this one excludes 0."""
    strata, other = _strata(steps), steps.put(before)
    now, then = (_leave_one_out(each, _by_window(each, strata)) for each in (steps, other))
    if now is None or then is None:
        return Reason.NO_CASES
    return intervals.jackknife_interval(
        value=now[0] - then[0],
        without_one=now[1] - then[1],
        copies=np.ones(len(now[1]), dtype=np.int64),
        floor=-1.0,
        level=level,
    )


def _leave_one_out(steps: LabeledSteps, found: tuple[Pairs, Pairs]) -> tuple[float, Floats] | None:
    """The value, and the values without one problem each."""
    touched, inside, total = _sums(steps, found)
    problems = touched[:, 1] > 0
    if not total[1]:
        return None
    left = total - touched[problems] + inside[problems]
    return float(total[0] / total[1]), divide(left[:, 0], left[:, 1])


def _sums(steps: LabeledSteps, found: tuple[Pairs, Pairs]) -> tuple[Floats, Floats, Floats]:
    """Per problem the pairs that touch it and those within it; all pairs."""
    of_step, within = found
    touched = sum_by(groups=steps.problems, rows=of_step, n_groups=steps.n_problems)
    inside = sum_by(groups=steps.problems, rows=within, n_groups=steps.n_problems) / 2
    return touched, inside, of_step.sum(axis=0) / 2


def _strata(steps: LabeledSteps) -> Ints:
    return steps.sources * _LONGEST + np.minimum(steps.indexes, _LONGEST - 1)


def _estimate(steps: LabeledSteps, found: tuple[Pairs, Pairs], level: float) -> Estimate:
    """From the pairs of every step (each pair counted at both of its steps) and those within its problem."""
    touched, inside, total = _sums(steps, found)
    of_step, problems = found[0], touched[:, 1] > 0
    counts = UnitCounts(units=len(steps.p_wrong), pairable=int((of_step[:, 1] > 0).sum()), problems=int(problems.sum()))
    if not total[1]:
        return undefined_estimate(Reason.NO_CASES, counts)
    value = float(total[0] / total[1])
    left = total - touched[problems] + inside[problems]
    interval = intervals.jackknife_interval(
        value=value,
        without_one=divide(left[:, 0], left[:, 1]),
        copies=np.ones(len(left), dtype=np.int64),
        floor=0.0,
        level=level,
    )
    return Estimate(
        value=value,
        counts=counts,
        interval=interval if isinstance(interval, Interval) else None,
        interval_reason=interval if isinstance(interval, Reason) else None,
        bootstrap_reason=Reason.NOT_DRAWN,
    )


def _by_rank(steps: LabeledSteps, strata: Ints) -> tuple[Pairs, Pairs]:
    if not len(strata):
        return np.zeros((0, 2)), np.zeros((0, 2))
    own = np.unique(np.column_stack([strata, steps.problems]), axis=0, return_inverse=True)[1].ravel()
    return _rank_pairs(steps, strata), _rank_pairs(steps, own)


def _rank_pairs(steps: LabeledSteps, groups: Ints) -> Pairs:
    """For every step its pairs with steps of the other kind in its group, counted along the sorted scores."""
    order = np.lexsort((steps.p_wrong, groups))
    group, score, wrong = groups[order], steps.p_wrong[order], steps.is_wrong[order].astype(np.float64)
    new_group = np.append(True, group[1:] != group[:-1])
    new_score = new_group | np.append(True, score[1:] != score[:-1])
    right_below, right_all = _before_tied_all(1 - wrong, new_group, new_score)
    wrong_below, wrong_all = _before_tied_all(wrong, new_group, new_score)
    in_order = np.where(wrong > 0, right_below, wrong_all - wrong_below)
    result = np.empty((len(order), 2))
    result[order] = np.column_stack([in_order, np.where(wrong > 0, right_all, wrong_all)])
    return result


def _before_tied_all(ones: Floats, new_group: Bools, new_score: Bools) -> tuple[Floats, Floats]:
    """How many ones lie below each place in its group, ties counting half; and how many the group has."""
    tie, group = np.cumsum(new_score) - 1, np.cumsum(new_group) - 1
    per_tie = np.bincount(tie, weights=ones)
    before_tie = (np.cumsum(per_tie) - per_tie)[tie]
    per_group = np.bincount(group, weights=ones)
    before_group = (np.cumsum(per_group) - per_group)[group]
    return before_tie - before_group + per_tie[tie] / 2, per_group[group]


def _by_window(steps: LabeledSteps, strata: Ints) -> tuple[Pairs, Pairs]:
    """Pairs of one stratum and of like length: every wrong step against every right one, in blocks."""
    of_step, within = np.zeros((len(strata), 2)), np.zeros((len(strata), 2))
    if not len(strata):
        return of_step, within
    order = np.argsort(strata, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(strata[order])) + 1):
        wrong, right = rows[steps.is_wrong[rows]], rows[~steps.is_wrong[rows]]
        if not len(wrong) or not len(right):
            continue
        for block in np.array_split(wrong, max(1, len(wrong) * len(right) // _CELLS)):
            _add_block(steps, block, right, of_step, within)
    return of_step, within


def _add_block(steps: LabeledSteps, wrong: Ints, right: Ints, of_step: Pairs, within: Pairs) -> None:
    apart = np.abs(steps.log_characters[wrong][:, None] - steps.log_characters[right][None, :])
    is_pair = apart <= MATCHED_WITHIN
    above = steps.p_wrong[wrong][:, None] - steps.p_wrong[right][None, :]
    in_order = ((above > 0) + 0.5 * (above == 0)) * is_pair
    same = steps.problems[wrong][:, None] == steps.problems[right][None, :]
    for target, mask in ((of_step, 1.0), (within, same)):
        cells = np.stack([in_order * mask, is_pair * mask], axis=2)
        target[wrong] += cells.sum(axis=1)
        target[right] += cells.sum(axis=0)
