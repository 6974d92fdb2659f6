"""ProcessBench's F1: does the PRM find the first wrong step, and does it leave correct traces unflagged?

The predicted first error is the first step with P(wrong) ≥ t, or none. F1 is the harmonic mean of the accuracy on
erroneous traces (the exact step must be found) and on correct traces. t comes from other traces than the evaluated
ones.

C. Zheng et al. (2024), "ProcessBench: identifying process errors in mathematical reasoning", arXiv:2412.06559.
"""

from dataclasses import dataclass

import numpy as np

from prm.evaluation.labeled_steps import NO_ERROR, JudgedTraces, step_indexes
from stats import estimation
from stats.arrays import Floats, Ints, divide, sum_by
from stats.estimates import Estimate, Reason
from stats.estimation import Statistic


@dataclass(frozen=True)
class ProcessBenchResult:
    f1: Estimate
    accuracy_erroneous: Estimate
    accuracy_correct: Estimate


def predict_first_errors(*, p_wrong: Floats, lengths: Ints, threshold: float) -> Ints:
    """Return each trace's predicted first error or NO_ERROR; the steps of all traces are end to end."""
    predicted = np.full(len(lengths), NO_ERROR, dtype=np.int64)
    above = np.flatnonzero(p_wrong >= threshold)
    trace = np.repeat(np.arange(len(lengths)), lengths)[above]
    flagged, first = np.unique(trace, return_index=True)
    predicted[flagged] = step_indexes(lengths)[above[first]]
    return predicted


def evaluate_processbench(judged: JudgedTraces, *, threshold: float) -> ProcessBenchResult:
    n_problems = int(judged.problems.max(initial=-1)) + 1
    sample = estimation.sample_from_sums(
        sum_by(groups=judged.problems, rows=_count_hits(judged, threshold), n_groups=n_problems),
        copies=np.ones(n_problems, dtype=np.int64),
        is_comparable=np.bincount(judged.problems) > 0,
        units=len(judged.truth),
        pairable=len(judged.truth),
        nothing=Reason.NO_CASES,
    )
    return ProcessBenchResult(**estimation.estimates(statistics=_STATISTICS, sample=sample))


def find_best_threshold(judged: JudgedTraces, *, n_candidates: int = 200) -> float:
    """Return the quantile of the scores with the best F1 on these traces, the middle one of equally good ones."""
    if not len(judged.p_wrong):
        return 0.5
    candidates = np.unique(np.quantile(judged.p_wrong, np.linspace(0, 1, n_candidates)))
    f1 = np.array([_f1(_count_hits(judged, threshold).sum(axis=0)) for threshold in candidates.tolist()])
    best = np.flatnonzero(f1 >= np.nanmax(f1)) if np.isfinite(f1).any() else np.arange(len(candidates))
    return float(candidates[best[len(best) // 2]])


def _count_hits(judged: JudgedTraces, threshold: float) -> Floats:
    """Per trace: erroneous and predicted exactly, erroneous, correct and unflagged, correct."""
    predicted = predict_first_errors(p_wrong=judged.p_wrong, lengths=judged.lengths, threshold=threshold)
    is_erroneous, is_hit = judged.truth != NO_ERROR, predicted == judged.truth
    columns = (is_erroneous & is_hit, is_erroneous, ~is_erroneous & is_hit, ~is_erroneous)
    return np.column_stack(columns).astype(np.float64)


def _accuracy_erroneous(counts: Floats) -> Floats:
    return divide(counts[..., 0], counts[..., 1])


def _accuracy_correct(counts: Floats) -> Floats:
    return divide(counts[..., 2], counts[..., 3])


def _f1(counts: Floats) -> Floats:
    erroneous, correct = _accuracy_erroneous(counts), _accuracy_correct(counts)
    total = erroneous + correct
    return np.where(total == 0, 0.0, divide(2 * erroneous * correct, total))


_STATISTICS = {
    "f1": Statistic(_f1, 0.0, Reason.NO_CASES),
    "accuracy_erroneous": Statistic(_accuracy_erroneous, 0.0, Reason.NO_CASES),
    "accuracy_correct": Statistic(_accuracy_correct, 0.0, Reason.NO_CASES),
}
