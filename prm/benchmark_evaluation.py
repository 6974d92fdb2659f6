"""Evaluate a backend on files of traces with known first errors (ProcessBench's format). Does not need a database."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings

from formats import input_files, near_duplicates
from formats.records import BadLine, TraceRecord
from jobs import paging
from labeling.traces import file_process, record_spool
from labeling.traces.scan import ImportOptions
from prm.backends import base, builtin
from prm.backends.base import ScorerInput, ScoringBackend
from prm.backends.builtin import StepFeatures
from prm.evaluation import labeled_steps, report
from prm.evaluation.audits import estimate_to_json
from prm.evaluation.contamination import TrainingProblems
from prm.evaluation.labeled_steps import NO_ERROR, JudgedTraces
from prm.selection import hazards
from stats.arrays import Bools, Floats, Ints, number_values
from stats.estimates import Estimate

_TRACES_PER_CALL = 256
_REPORTED_FIGURES = (
    *("f1", "accuracy_erroneous", "accuracy_correct", "auc", "risk_set_auc", "risk_set_auc_length_matched"),
    *("risk_set_auc_length_only", "ece"),
)


class BenchmarkUnreadable(Exception):
    """The file cannot be used as a benchmark. The message names the file and the record."""


@dataclass(frozen=True)
class BenchmarkSet:
    """Traces of one or several files; `problems` numbers the distinct problem texts, `sources` the files."""

    traces: list[ScorerInput]
    first_errors: Ints
    problems: Ints
    sources: Ints
    is_answer_wrong: Bools
    is_answer_right: Bools

    @property
    def lengths(self) -> Ints:
        return np.array([len(trace.steps) for trace in self.traces], dtype=np.int64)

    def with_scores(self, p_wrong: Floats) -> JudgedTraces:
        characters = np.array([len(step) for trace in self.traces for step in trace.steps], dtype=np.int64)
        return JudgedTraces(p_wrong, characters, self.lengths, self.first_errors, self.problems, self.sources)


def read_benchmark(paths: Sequence[Path]) -> BenchmarkSet:
    rows = [(number, record) for number, path in enumerate(paths) for record in _read_records(path)]
    if not rows:
        raise BenchmarkUnreadable(f"No traces in {', '.join(map(str, paths))}.")
    records = [record for _, record in rows]
    return BenchmarkSet(
        traces=[ScorerInput(each.problem.text, [step.options[0].text for step in each.steps]) for each in records],
        first_errors=np.array([_first_error(record) for record in records], dtype=np.int64),
        # Numbered in the order of their digests, so that folds do not depend on the order of the files.
        problems=number_values([near_duplicates.digest_normalized(record.problem.text) for record in records]),
        sources=np.array([number for number, _ in rows], dtype=np.int64),
        is_answer_wrong=np.array([record.is_right is False for record in records], dtype=np.bool_),
        is_answer_right=np.array([record.is_right is True for record in records], dtype=np.bool_),
    )


def _read_records(path: Path) -> list[TraceRecord]:
    try:
        with record_spool.open_spool(Path(settings.DATA_DIR)) as spool:
            for _progress in file_process.scan_file(path, ImportOptions(format="processbench"), spool):
                pass
            records = list(spool.read())
    except input_files.UnreadableFile as error:
        raise BenchmarkUnreadable(f"The file cannot be read: {error}") from None
    bad = [record for record in records if isinstance(record, BadLine)]
    if bad:
        raise BenchmarkUnreadable(f"{path}: {len(bad)} invalid records; the first one: {bad[0]}")
    return [record for record in records if isinstance(record, TraceRecord) and record.steps]


def _first_error(record: TraceRecord) -> int:
    turns = record.submissions[0].turns
    negative = [turn.position for turn in turns for judgment in turn.shown or () if judgment.rating == -1]
    return min(negative, default=NO_ERROR)


# --- evaluation -------------------------------------------------------------------------------------------------------


def evaluate_builtin(*, judged: BenchmarkSet, training: BenchmarkSet) -> dict[str, Any]:
    """Train on other traces; the threshold comes from folds of the training traces."""
    features = builtin.extract_features(training.traces)
    threshold = report.find_best_threshold(training.with_scores(_cross_validate(training, features)))
    scorer = _train_on(training, features, np.ones(len(training.traces), dtype=np.bool_))
    scored = judged.with_scores(scorer.p_wrong(builtin.extract_features(judged.traces)))
    return _summarize(
        scored, report.report_on_traces(scored, threshold=threshold), count_training_overlap(training, judged)
    )


def evaluate_builtin_across_folds(*, judged: BenchmarkSet) -> dict[str, Any]:
    """Evaluate without separate training traces: train on four folds of problems to evaluate the fifth."""
    scored = judged.with_scores(_cross_validate(judged, builtin.extract_features(judged.traces)))
    return _summarize(scored, report.report_across_folds(scored), 0)


def evaluate_backend(
    *,
    backend: ScoringBackend,
    semantics: str,
    judged: BenchmarkSet,
    training: BenchmarkSet | None = None,
    threshold: float = 0.5,
) -> dict[str, Any]:
    parts = [score_traces(backend, part, semantics) for part in paging.split(judged.traces, _TRACES_PER_CALL)]
    return summarize_scores(
        judged,
        np.concatenate(parts),
        semantics=semantics,
        threshold=threshold,
        training_problems=_distinct_problems(training) if training else [],
    )


def score_traces(backend: ScoringBackend, traces: Sequence[ScorerInput], semantics: str) -> Floats:
    """Return the validated scores of all steps end to end."""
    return np.concatenate([np.zeros(0), *base.validate_scores(backend.score(traces), traces, semantics)])


def summarize_scores(
    judged: BenchmarkSet,
    scores: Floats,
    *,
    semantics: str,
    threshold: float,
    training_problems: Sequence[str] | None,
) -> dict[str, Any]:
    """Return the figures of a backend's scores; `training_problems` is None if the training set is not stated."""
    first_value = hazards.estimate_first_value(scores, judged.lengths, semantics)
    scored = judged.with_scores(hazards.raw_hazards(scores, judged.lengths, semantics, {"first_value": first_value}))
    n_in_training = None if training_problems is None else _count_contained(training_problems, judged)
    return _summarize(scored, report.report_on_traces(scored, threshold=threshold), n_in_training)


def count_training_overlap(training: BenchmarkSet, judged: BenchmarkSet) -> int:
    """Count the evaluated problems that the training files contain."""
    return _count_contained(_distinct_problems(training), judged)


def _count_contained(training_problems: Sequence[str], judged: BenchmarkSet) -> int:
    problems = TrainingProblems(training_problems)
    return sum(problems.holds(problem) is not None for problem in _distinct_problems(judged))


def _summarize(scored: JudgedTraces, estimates: dict[str, Estimate], n_in_training: int | None) -> dict[str, Any]:
    """Return values by name, their intervals by the same names (or null), and counts."""
    figures = {name: estimate_to_json(estimates[name]) for name in _REPORTED_FIGURES}
    return {
        **{name: figure["value"] for name, figure in figures.items()},
        "intervals": {name: figure["interval"] for name, figure in figures.items()},
        "counts": report.count_judged(scored),
        "problems_in_training": n_in_training,
    }


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
