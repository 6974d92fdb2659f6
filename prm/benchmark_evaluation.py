"""Evaluate a backend on benchmark files with known first errors. Does not need a database."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prm.backends import base, builtin
from prm.backends.base import ScorerInput, ScoringBackend
from prm.backends.builtin import StepFeatures
from prm.benchmark_files import BenchmarkSet
from prm.evaluation import labeled_steps, processbench, report
from prm.evaluation.audits import estimate_to_json
from prm.evaluation.contamination import TrainingProblems
from prm.evaluation.labeled_steps import JudgedTraces
from prm.selection import semantics
from prm.selection.semantics import Semantics
from stats.arrays import Bools, Floats
from stats.estimates import Estimate

_TRACES_PER_CALL = 256
_REPORTED_FIGURES = (
    *("f1", "accuracy_erroneous", "accuracy_correct", "auc", "risk_set_auc", "risk_set_auc_length_matched"),
    *("risk_set_auc_length_only", "ece"),
)


@dataclass(frozen=True)
class BenchmarkResult:
    estimates: dict[str, Estimate]
    counts: dict[str, int]
    n_in_training: int

    def as_dict(self) -> dict[str, Any]:
        """Return values by name, their intervals by the same names (or null), and counts."""
        figures = {name: estimate_to_json(self.estimates[name]) for name in _REPORTED_FIGURES}
        return {
            **{name: figure["value"] for name, figure in figures.items()},
            "intervals": {name: figure["interval"] for name, figure in figures.items()},
            "counts": self.counts,
            "problems_in_training": self.n_in_training,
        }


def evaluate_builtin(*, judged: BenchmarkSet, training: BenchmarkSet) -> BenchmarkResult:
    """Train on other traces; the threshold comes from folds of the training traces."""
    features = builtin.extract_features(training.traces)
    threshold = processbench.find_best_threshold(training.with_scores(_cross_validate(training, features)))
    scorer = _train_on(training, features, np.ones(len(training.traces), dtype=np.bool_))
    scored = judged.with_scores(scorer.p_wrong(builtin.extract_features(judged.traces)))
    return _summarize(scored, threshold, count_training_overlap(training, judged))


def evaluate_builtin_across_folds(*, judged: BenchmarkSet) -> BenchmarkResult:
    """Without training traces: train on four folds of problems to evaluate the fifth."""
    scored = judged.with_scores(_cross_validate(judged, builtin.extract_features(judged.traces)))
    return BenchmarkResult(report.report_across_folds(scored), report.count_judged(scored), 0)


def evaluate_backend(
    *,
    backend: ScoringBackend,
    meaning: Semantics,
    judged: BenchmarkSet,
    training: BenchmarkSet | None = None,
    threshold: float = 0.5,
) -> BenchmarkResult:
    scored = judged.with_scores(compute_hazards(backend, judged.traces, meaning))
    return _summarize(scored, threshold, count_training_overlap(training, judged) if training else 0)


def compute_hazards(backend: ScoringBackend, traces: Sequence[ScorerInput], meaning: Semantics) -> Floats:
    parts = [np.zeros(0)]
    for start in range(0, len(traces), _TRACES_PER_CALL):
        part = traces[start : start + _TRACES_PER_CALL]
        parts += base.validate_scores(backend.score(part), part, meaning)
    lengths = np.array([len(trace.steps) for trace in traces], dtype=np.int64)
    scores, starts = np.concatenate(parts), np.cumsum(lengths) - lengths
    first_value = semantics.mean_first_value(scores=scores, starts=starts)
    return semantics.scores_to_hazards(scores=scores, starts=starts, semantics=meaning, first_value=first_value)


def count_training_overlap(training: BenchmarkSet, judged: BenchmarkSet) -> int:
    """Count the evaluated problems that the training files contain."""
    problems = TrainingProblems(_distinct_problems(training))
    return sum(problems.holds(problem) is not None for problem in _distinct_problems(judged))


def _summarize(scored: JudgedTraces, threshold: float, n_in_training: int) -> BenchmarkResult:
    estimates = report.report_on_traces(scored, threshold=threshold)
    return BenchmarkResult(estimates, report.count_judged(scored), n_in_training)


def _distinct_problems(benchmark: BenchmarkSet) -> list[str]:
    _, first = np.unique(benchmark.problems, return_index=True)
    return [benchmark.traces[index].problem for index in first]


def _cross_validate(benchmark: BenchmarkSet, features: StepFeatures) -> Floats:
    """Return P(wrong) of every step by a scorer that was not trained on its problem."""
    fold, lengths = benchmark.problems % report.FOLDS, benchmark.lengths
    p_wrong = np.full(int(lengths.sum()), 0.5)
    for n in range(report.FOLDS):
        if (fold == n).any():
            rows = np.repeat(fold == n, lengths)
            p_wrong[rows] = _train_on(benchmark, features, fold != n).p_wrong(builtin.take_steps(features, rows))
    return p_wrong


def _train_on(benchmark: BenchmarkSet, features: StepFeatures, is_kept: Bools) -> builtin.BuiltinScorer:
    """Train on the labeled steps of some traces."""
    lengths, first_errors = benchmark.lengths, benchmark.first_errors
    is_labeled = labeled_steps.mask_labeled(lengths=lengths, first_errors=first_errors)
    rows = is_labeled & np.repeat(is_kept, lengths)
    is_wrong = labeled_steps.step_indexes(lengths) == np.repeat(first_errors, lengths)
    return builtin.train_scorer(builtin.take_steps(features, rows), is_wrong[rows])
