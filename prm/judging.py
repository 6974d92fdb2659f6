"""Judges a backend on traces whose first error is known. Reads nothing, writes nothing: benchmarks in, figures out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labeling.agreement.arrays import Bools, Floats
from labeling.agreement.result import Estimate
from prm.backends import asked, builtin
from prm.backends.asked import Backend, Trace
from prm.benchmarks import Benchmark
from prm.evaluation import contamination, report
from prm.evaluation.steps import is_labelled
from prm.selection import semantics
from prm.selection.semantics import Semantics

BATCH = 256
_TOLD = (
    *("f1", "accuracy_erroneous", "accuracy_correct", "auc", "risk_set_auc", "risk_set_auc_length_matched"),
    *("risk_set_auc_length_only", "ece"),
)


@dataclass(frozen=True)
class Verdict:
    estimates: dict[str, Estimate]
    counts: dict[str, int]
    n_in_training: int

    def as_dict(self) -> dict[str, Any]:
        """What a program reads: values, their intervals by the same names (null where there is none), counts."""
        told = {name: self.estimates[name] for name in _TOLD}
        return {
            **{name: each.value for name, each in told.items()},
            "intervals": {
                name: [each.interval.low, each.interval.high] if each.interval else None for name, each in told.items()
            },
            "counts": self.counts,
            "problems_in_training": self.n_in_training,
        }


def of_builtin(*, judged: Benchmark, training: Benchmark) -> Verdict:
    """Trained on other traces; the threshold comes from folds of the training traces."""
    seen = builtin.see(training.traces)
    threshold = report.best_threshold(training.judged(_across_folds(training, seen)))
    scorer = builtin.train(*_labelled(training, seen, np.ones(len(training.traces), dtype=np.bool_)))
    found = judged.judged(scorer.p_wrong(builtin.see(judged.traces)))
    return Verdict(report.of_traces(found, threshold=threshold), report.counts(found), n_in(training, judged))


def of_builtin_across_folds(*, judged: Benchmark) -> Verdict:
    """Nothing to train on: each fold of problems is judged by what the other folds teach."""
    found = judged.judged(_across_folds(judged, builtin.see(judged.traces)))
    return Verdict(report.by_threshold_of_others(found), report.counts(found), 0)


def of_backend(
    *,
    backend: Backend,
    means: Semantics,
    judged: Benchmark,
    training: Benchmark | None = None,
    threshold: float = 0.5,
) -> Verdict:
    p_wrong = hazards_of(backend, judged.traces, means)
    found = judged.judged(p_wrong)
    known = n_in(training, judged) if training else 0
    return Verdict(report.of_traces(found, threshold=threshold), report.counts(found), known)


def hazards_of(backend: Backend, traces: Sequence[Trace], means: Semantics) -> Floats:
    parts: list[Floats] = []
    for start in range(0, len(traces), BATCH):
        some = traces[start : start + BATCH]
        parts += asked.checked(backend.score(some), some, means)
    lengths = np.array([len(trace.steps) for trace in traces], dtype=np.int64)
    scores = np.concatenate(parts) if parts else np.zeros(0)
    starts = np.cumsum(lengths) - lengths
    before = semantics.first_value(scores=scores, starts=starts)
    return semantics.hazards(scores=scores, starts=starts, semantics=means, first_value=before)


def n_in(training: Benchmark, judged: Benchmark) -> int:
    """How many judged problems the training traces hold."""
    return contamination.find(training=_problems(training), judged=_problems(judged)).n


def _problems(benchmark: Benchmark) -> list[str]:
    """Each different problem once."""
    _, first = np.unique(benchmark.problems, return_index=True)
    return [benchmark.traces[place].problem for place in first]


def _across_folds(benchmark: Benchmark, seen: builtin.Seen) -> Floats:
    """P(wrong) of every step by a scorer that saw no trace of its problem."""
    fold, lengths = benchmark.problems % report.FOLDS, benchmark.lengths
    found = np.full(int(lengths.sum()), 0.5)
    for each in range(report.FOLDS):
        if (fold == each).any():
            scorer = builtin.train(*_labelled(benchmark, seen, fold != each))
            rows = np.repeat(fold == each, lengths)
            found[rows] = scorer.p_wrong(builtin.keep(seen, rows))
    return found


def _labelled(benchmark: Benchmark, seen: builtin.Seen, is_kept: Bools) -> tuple[builtin.Seen, Bools]:
    """The labelled steps of some traces, and which of them are wrong."""
    lengths = benchmark.lengths
    rows = is_labelled(lengths=lengths, first_errors=benchmark.first_errors) & np.repeat(is_kept, lengths)
    at = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    is_wrong = at == np.repeat(benchmark.first_errors, lengths)
    return builtin.keep(seen, rows), is_wrong[rows]
