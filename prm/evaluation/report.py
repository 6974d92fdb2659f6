"""Compute all figures of a PRM's evaluation. Base a claim on the whole table, never on one figure.

    first errors   F1, accuracy on erroneous and on correct traces, at a threshold found on other problems
    steps          AUC, risk-set AUC, the length-matched form, the same for length only, ECE, missed errors
                   ("over_credit"), false alarms ("over_blame"), false confidence

Only steps up to and including a trace's first error carry a label. The length-only figure is the length-matched one
with log characters in place of the PRM's scores.

ProcessBench's F1 tells whether the PRM finds the first wrong step and leaves correct traces unflagged. The predicted
first error is the first step with P(wrong) ≥ t, or none. F1 is the harmonic mean of the accuracy on erroneous traces
(the exact step must be found) and on correct traces. t comes from other traces than the evaluated ones.

Reranking is the expected share of right answers if the best-scored of N candidates is taken. Exact over all subsets:
with n candidates in order of score, candidate r (from 0) is the best of a random N of them with probability
C(n - 1 - r, N - 1) / C(n, N); candidates of equal score share theirs. For comparison: a random choice (N = 1) and the
best possible one (a right candidate is among the N).

C. Zheng et al. (2024), "ProcessBench: identifying process errors in mathematical reasoning", arXiv:2412.06559; K. Cobbe
et al. (2021), "Training verifiers to solve math word problems", arXiv:2110.14168; the sum over subsets as in M. Chen et
al. (2021), arXiv:2107.03374, section 2.1.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from prm.evaluation import step_figures
from prm.evaluation.labeled_steps import NO_ERROR, JudgedTraces, LabeledSteps, step_indexes
from stats import estimation
from stats.arrays import Bools, Floats, Ints, divide, sum_by
from stats.estimates import Estimate, Reason
from stats.estimation import Statistic

FOLDS = 5
_CANDIDATES = 200
_STEP_FIGURES: dict[str, Callable[[LabeledSteps], Estimate]] = {
    "auc": step_figures.auc,
    "risk_set_auc": step_figures.risk_set_auc,
    "risk_set_auc_length_matched": step_figures.length_matched_auc,
    "risk_set_auc_length_only": step_figures.length_only_matched_auc,
    "ece": step_figures.expected_calibration_error,
    "over_credit": step_figures.missed_error_share,
    "over_blame": step_figures.false_alarm_share,
    "false_confidence": step_figures.false_confidence_share,
}


def report_on_traces(judged: JudgedTraces, *, threshold: float) -> dict[str, Estimate]:
    """Return every figure at a threshold that comes from other traces."""
    return evaluate_processbench(judged, threshold=threshold) | report_on_steps(judged.labeled_steps())


def report_across_folds(judged: JudgedTraces) -> dict[str, Estimate]:
    """Return every figure, with each fold of problems at the threshold of the other folds."""
    margins = judged.p_wrong.copy()  # P(wrong) minus the threshold
    fold = judged.problems % FOLDS
    for n in range(FOLDS):
        others = judged.keep(fold != n)
        if len(others.lengths) and (fold == n).any():
            rows = (fold == n)[judged.traces]
            margins[rows] = judged.p_wrong[rows] - find_best_threshold(others)
    first_errors = evaluate_processbench(replace(judged, p_wrong=margins), threshold=0.0)
    return first_errors | report_on_steps(judged.labeled_steps())


def report_on_steps(steps: LabeledSteps) -> dict[str, Estimate]:
    return {name: compute(steps) for name, compute in _STEP_FIGURES.items()}


def count_judged(judged: JudgedTraces) -> dict[str, int]:
    steps = judged.labeled_steps()
    return {
        "traces": len(judged.lengths),
        "erroneous": int((judged.truth != NO_ERROR).sum()),
        "correct": int((judged.truth == NO_ERROR).sum()),
        "problems": len(np.unique(judged.problems)),
        "steps": len(steps.p_wrong),
        "wrong_steps": int(steps.is_wrong.sum()),
    }


# --- first errors -----------------------------------------------------------------------------------------------------


def predict_first_errors(*, p_wrong: Floats, lengths: Ints, threshold: float) -> Ints:
    """Return each trace's predicted first error or NO_ERROR; the steps of all traces are end to end."""
    predicted = np.full(len(lengths), NO_ERROR, dtype=np.int64)
    above = np.flatnonzero(p_wrong >= threshold)
    trace = np.repeat(np.arange(len(lengths)), lengths)[above]
    flagged, first = np.unique(trace, return_index=True)
    predicted[flagged] = step_indexes(lengths)[above[first]]
    return predicted


def evaluate_processbench(judged: JudgedTraces, *, threshold: float) -> dict[str, Estimate]:
    """Return F1 and the accuracies on erroneous and on correct traces."""
    n_problems = int(judged.problems.max(initial=-1)) + 1
    sample = estimation.sample_from_sums(
        sum_by(groups=judged.problems, rows=_count_hits(judged, threshold), n_groups=n_problems),
        is_comparable=np.bincount(judged.problems) > 0,
        units=len(judged.truth),
    )
    return estimation.estimate_all(statistics=_STATISTICS, sample=sample)


def find_best_threshold(judged: JudgedTraces) -> float:
    """Return the quantile of the scores with the best F1 on these traces, the middle one of equally good ones."""
    if not len(judged.p_wrong):
        return 0.5
    candidates = np.unique(np.quantile(judged.p_wrong, np.linspace(0, 1, _CANDIDATES)))
    f1 = np.array([_f1(_count_hits(judged, threshold).sum(axis=0)) for threshold in candidates.tolist()])
    best = np.flatnonzero(f1 >= np.nanmax(f1)) if np.isfinite(f1).any() else np.arange(len(candidates))
    return float(candidates[best[len(best) // 2]])


def _count_hits(judged: JudgedTraces, threshold: float) -> Floats:
    """Per trace: erroneous and predicted exactly, erroneous, correct and unflagged, correct."""
    predicted = predict_first_errors(p_wrong=judged.p_wrong, lengths=judged.lengths, threshold=threshold)
    is_erroneous, is_hit = judged.truth != NO_ERROR, predicted == judged.truth
    columns = (is_erroneous & is_hit, is_erroneous, ~is_erroneous & is_hit, ~is_erroneous)
    return np.column_stack(columns).astype(np.float64)


def _f1(counts: Floats) -> Floats:
    erroneous, correct = divide(counts[..., 0], counts[..., 1]), divide(counts[..., 2], counts[..., 3])
    total = erroneous + correct
    return np.where(total == 0, 0.0, divide(2 * erroneous * correct, total))


_STATISTICS = {
    "f1": Statistic(_f1, 0.0, Reason.NO_CASES),
    "accuracy_erroneous": estimation.share_statistic(0, 1),
    "accuracy_correct": estimation.share_statistic(2, 3),
}


# --- reranking --------------------------------------------------------------------------------------------------------


def best_of_n_curve(*, scores: Floats, is_right: Bools, problems: Ints, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Return the shares of right answers for each N, averaged over the problems that have at least N candidates."""
    order = np.argsort(problems, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(problems[order])) + 1) if len(order) else []
    points = []
    for n in sizes:
        rows = [_score_problem(scores[group], is_right[group], n) for group in groups if len(group) >= n]
        if rows:
            shares = zip(("chosen", "by_chance", "possible"), np.mean(rows, axis=0).tolist(), strict=True)
            points.append({"n": n, **dict(shares), "problems": len(rows)})
    return points


def _score_problem(scores: Floats, is_right: Bools, n: int) -> tuple[float, float, float]:
    ranked = np.argsort(-scores, kind="stable")
    right, score = is_right[ranked].astype(np.float64), scores[ranked]
    size, n_subsets = len(scores), math.comb(len(scores), n)
    chance = np.array([math.comb(size - 1 - rank, n - 1) / n_subsets for rank in range(size)])
    _, tie = np.unique(-score, return_inverse=True)
    tie_chance = np.bincount(tie, weights=chance) / np.bincount(tie)
    wrong = size - int(is_right.sum())
    return float(tie_chance[tie] @ right), float(right.mean()), 1 - math.comb(wrong, n) / n_subsets
