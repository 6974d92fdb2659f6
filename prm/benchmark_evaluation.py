"""Judges a backend on traces whose first error is known. Reads nothing, writes nothing: benchmarks in, figures out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prm.backends import base, builtin
from prm.backends.base import ScorerInput, ScoringBackend
from prm.benchmark_files import BenchmarkSet
from prm.evaluation import contamination, report
from prm.evaluation.labeled_steps import mask_labeled
from prm.selection import semantics
from prm.selection.semantics import Semantics
from stats.arrays import Bools, Floats
from stats.estimates import Estimate

BATCH = 256
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
        """What a program reads: values, their intervals by the same names (null where there is none), counts."""
        told = {name: self.estimates[name] for name in _REPORTED_FIGURES}
        return {
            **{name: each.value for name, each in told.items()},
            "intervals": {
                name: [each.interval.low, each.interval.high] if each.interval else None for name, each in told.items()
            },
            "counts": self.counts,
            "problems_in_training": self.n_in_training,
        }


def evaluate_builtin(*, judged: BenchmarkSet, training: BenchmarkSet) -> BenchmarkResult:
    """Trained on other traces; the threshold comes from folds of the training traces."""
    seen = builtin.extract_features(training.traces)
    threshold = report.find_threshold(training.judged(_cross_validate(training, seen)))
    scorer = builtin.train_scorer(*_labeled_steps_of(training, seen, np.ones(len(training.traces), dtype=np.bool_)))
    found = judged.judged(scorer.p_wrong(builtin.extract_features(judged.traces)))
    return BenchmarkResult(
        report.report_on_traces(found, threshold=threshold),
        report.count_judged(found),
        count_training_overlap(training, judged),
    )


def evaluate_builtin_across_folds(*, judged: BenchmarkSet) -> BenchmarkResult:
    """Nothing to train on: each fold of problems is judged by what the other folds teach."""
    found = judged.judged(_cross_validate(judged, builtin.extract_features(judged.traces)))
    return BenchmarkResult(report.report_across_folds(found), report.count_judged(found), 0)


def evaluate_backend(
    *,
    backend: ScoringBackend,
    means: Semantics,
    judged: BenchmarkSet,
    training: BenchmarkSet | None = None,
    threshold: float = 0.5,
) -> BenchmarkResult:
    p_wrong = compute_hazards(backend, judged.traces, means)
    found = judged.judged(p_wrong)
    known = count_training_overlap(training, judged) if training else 0
    return BenchmarkResult(report.report_on_traces(found, threshold=threshold), report.count_judged(found), known)


def compute_hazards(backend: ScoringBackend, traces: Sequence[ScorerInput], means: Semantics) -> Floats:
    parts: list[Floats] = []
    for start in range(0, len(traces), BATCH):
        some = traces[start : start + BATCH]
        parts += base.validate_scores(backend.score(some), some, means)
    lengths = np.array([len(trace.steps) for trace in traces], dtype=np.int64)
    scores = np.concatenate(parts) if parts else np.zeros(0)
    starts = np.cumsum(lengths) - lengths
    before = semantics.mean_first_value(scores=scores, starts=starts)
    return semantics.scores_to_hazards(scores=scores, starts=starts, semantics=means, first_value=before)


def count_training_overlap(training: BenchmarkSet, judged: BenchmarkSet) -> int:
    """How many judged problems the training traces hold."""
    return contamination.find_contaminated(training=_distinct_problems(training), judged=_distinct_problems(judged)).n


def _distinct_problems(benchmark: BenchmarkSet) -> list[str]:
    """Each different problem once."""
    _, first = np.unique(benchmark.problems, return_index=True)
    return [benchmark.traces[place].problem for place in first]


def _cross_validate(benchmark: BenchmarkSet, seen: builtin.StepFeatures) -> Floats:
    """P(wrong) of every step by a scorer that saw no trace of its problem."""
    fold, lengths = benchmark.problems % report.FOLDS, benchmark.lengths
    found = np.full(int(lengths.sum()), 0.5)
    for each in range(report.FOLDS):
        if (fold == each).any():
            scorer = builtin.train_scorer(*_labeled_steps_of(benchmark, seen, fold != each))
            rows = np.repeat(fold == each, lengths)
            found[rows] = scorer.p_wrong(builtin.take_steps(seen, rows))
    return found


def _labeled_steps_of(
    benchmark: BenchmarkSet, seen: builtin.StepFeatures, is_kept: Bools
) -> tuple[builtin.StepFeatures, Bools]:
    """The labelled steps of some traces, and which of them are wrong."""
    lengths = benchmark.lengths
    rows = mask_labeled(lengths=lengths, first_errors=benchmark.first_errors) & np.repeat(is_kept, lengths)
    at = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    is_wrong = at == np.repeat(benchmark.first_errors, lengths)
    return builtin.take_steps(seen, rows), is_wrong[rows]
