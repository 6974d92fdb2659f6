"""ProcessBench's figure: is the first wrong step found, and are right traces left in peace?

The predicted first error is the first step with P(wrong) ≥ t, none where there is no such step. Accuracy on erroneous
traces (the step must be the very one) and on correct traces; F1 is their harmonic mean. t comes from other traces than
those that are judged.

C. Zheng et al. (2024), "ProcessBench: identifying process errors in mathematical reasoning", arXiv:2412.06559.
"""

from dataclasses import dataclass

import numpy as np

from prm.evaluation.labeled_steps import NO_ERROR, step_indexes
from stats import estimation
from stats.arrays import Floats, Ints, divide, sum_by
from stats.estimates import Estimate, Reason
from stats.estimation import Statistic


@dataclass(frozen=True)
class ProcessBenchResult:
    f1: Estimate
    accuracy_erroneous: Estimate
    accuracy_correct: Estimate
    threshold: float


def predict_first_errors(*, p_wrong: Floats, lengths: Ints, threshold: float) -> Ints:
    """Per trace the predicted first error, NONE for none; steps of traces laid end to end."""
    found = np.full(len(lengths), NO_ERROR, dtype=np.int64)
    above = np.flatnonzero(p_wrong >= threshold)
    trace = np.repeat(np.arange(len(lengths)), lengths)[above]
    hit, first = np.unique(trace, return_index=True)
    found[hit] = step_indexes(lengths)[above[first]]
    return found


def evaluate_processbench(
    *, p_wrong: Floats, lengths: Ints, truth: Ints, problems: Ints, threshold: float, level: float = 0.95
) -> ProcessBenchResult:
    said = predict_first_errors(p_wrong=p_wrong, lengths=lengths, threshold=threshold)
    sample = estimation.sample_from_sums(
        sum_by(groups=problems, rows=_counts(said, truth), n_groups=int(problems.max(initial=-1)) + 1),
        copies=np.ones(int(problems.max(initial=-1)) + 1, dtype=np.int64),
        is_comparable=np.bincount(problems) > 0,
        units=len(truth),
        pairable=len(truth),
        nothing=Reason.NO_CASES,
    )
    found = estimation.estimates(statistics=_STATISTICS, sample=sample, level=level)
    return ProcessBenchResult(threshold=threshold, **found)


def find_best_threshold(*, p_wrong: Floats, lengths: Ints, truth: Ints, looks: int = 200) -> float:
    """The threshold with the best F1 on these traces, among quantiles of their scores; the middle one of equals."""
    candidates = np.unique(np.quantile(p_wrong, np.linspace(0, 1, looks))) if len(p_wrong) else np.array([0.5])
    f1 = np.array(
        [
            _f1(_counts(predict_first_errors(p_wrong=p_wrong, lengths=lengths, threshold=t), truth).sum(axis=0))
            for t in candidates.tolist()
        ]
    )
    best = np.flatnonzero(f1 >= np.nanmax(f1)) if np.isfinite(f1).any() else np.arange(len(candidates))
    return float(candidates[best[len(best) // 2]])


def _counts(said: Ints, truth: Ints) -> Floats:
    """Per trace: erroneous and found, erroneous, correct and left in peace, correct."""
    is_erroneous, is_right = truth != NO_ERROR, said == truth
    columns = (is_erroneous & is_right, is_erroneous, ~is_erroneous & is_right, ~is_erroneous)
    return np.column_stack(columns).astype(np.float64)


def _erroneous(counts: Floats) -> Floats:
    return divide(counts[..., 0], counts[..., 1])


def _correct(counts: Floats) -> Floats:
    return divide(counts[..., 2], counts[..., 3])


def _f1(counts: Floats) -> Floats:
    erroneous, correct = _erroneous(counts), _correct(counts)
    together = erroneous + correct
    return np.where(together == 0, 0.0, divide(2 * erroneous * correct, together))


_STATISTICS = {
    "f1": Statistic(_f1, 0.0, Reason.NO_CASES),
    "accuracy_erroneous": Statistic(_erroneous, 0.0, Reason.NO_CASES),
    "accuracy_correct": Statistic(_correct, 0.0, Reason.NO_CASES),
}
