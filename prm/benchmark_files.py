"""Files of traces with known first errors (ProcessBench's format), as arrays. Does not need a database."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from formats import catalog, input_files
from formats.records import BadLine, TraceRecord
from prm.backends.base import ScorerInput
from prm.evaluation import contamination
from prm.evaluation.labeled_steps import NO_ERROR, JudgedTraces
from stats.arrays import Bools, Floats, Ints


class BenchmarkUnreadable(Exception):
    """The file cannot be used as a benchmark. The message names the file and the record."""


@dataclass(frozen=True)
class BenchmarkSet:
    """Traces of one or several files; `problems` numbers the distinct problem texts, `sources` the files."""

    traces: list[ScorerInput]
    first_errors: Ints
    problems: Ints
    sources: Ints
    is_answer_wrong: Bools  # false if the outcome is right or unknown

    @property
    def lengths(self) -> Ints:
        return np.array([len(trace.steps) for trace in self.traces], dtype=np.int64)

    def with_scores(self, p_wrong: Floats) -> JudgedTraces:
        characters = np.array([len(step) for trace in self.traces for step in trace.steps], dtype=np.int64)
        return JudgedTraces(p_wrong, characters, self.lengths, self.first_errors, self.problems, self.sources)


def read_benchmark(paths: Sequence[Path]) -> BenchmarkSet:
    traces: list[ScorerInput] = []
    errors: list[int] = []
    sources: list[int] = []
    wrong: list[bool] = []
    for number, path in enumerate(paths):
        for record in _read_records(path):
            traces.append(ScorerInput(record.problem.text, [step.options[0].text for step in record.steps]))
            errors.append(_first_error(record))
            sources.append(number)
            wrong.append(record.is_right is False)
    if not traces:
        raise BenchmarkUnreadable(f"No traces in {', '.join(map(str, paths))}.")
    # Numbered in the order of their digests, so that folds do not depend on the order of the files.
    digests = [contamination.normal_text_digest(trace.problem) for trace in traces]
    problems = np.unique(digests, return_inverse=True)[1]
    first_errors, source = np.array(errors, dtype=np.int64), np.array(sources, dtype=np.int64)
    return BenchmarkSet(traces, first_errors, problems, source, np.array(wrong, dtype=np.bool_))


def _read_records(path: Path) -> list[TraceRecord]:
    try:
        with input_files.open_file(path) as stream:
            records = list(catalog.get_input_format("processbench").read(stream))
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
