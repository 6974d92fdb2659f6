"""Files of traces whose first error is known (ProcessBench's form), as arrays. Reads files alone, no database."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from formats import catalog, input_files
from formats.records import BadLine, TraceRecord
from prm.backends.base import ScorerInput
from prm.evaluation import contamination
from prm.evaluation.labeled_steps import NO_ERROR
from prm.evaluation.report import JudgedTraces
from stats.arrays import Bools, Floats, Ints


class BenchmarkUnreadable(Exception):
    """The file cannot be judged on; says where."""


@dataclass(frozen=True)
class BenchmarkSet:
    """Traces of one or several files; `problems` number the different problems of the text, `sources` the files."""

    traces: list[ScorerInput]
    first_errors: Ints
    problems: Ints
    sources: Ints
    is_answer_wrong: Bools  # false where the outcome is right or unknown

    @property
    def lengths(self) -> Ints:
        return np.array([len(trace.steps) for trace in self.traces], dtype=np.int64)

    def judged(self, p_wrong: Floats) -> JudgedTraces:
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
        raise BenchmarkUnreadable("There is no trace in " + ", ".join(map(str, paths)))
    # Numbered by a hash of the text, so that folds are the same whatever the order of the files.
    known = {
        digest: n
        for n, digest in enumerate(sorted({contamination.normal_text_digest(trace.problem) for trace in traces}))
    }
    problems = [known[contamination.normal_text_digest(trace.problem)] for trace in traces]
    numbers = [np.array(column, dtype=np.int64) for column in (errors, problems, sources)]
    return BenchmarkSet(traces, numbers[0], numbers[1], numbers[2], np.array(wrong, dtype=np.bool_))


def _read_records(path: Path) -> list[TraceRecord]:
    try:
        with input_files.open_file(path) as stream:
            found = list(catalog.get_input_format("processbench").read(stream))
    except input_files.UnreadableFile as error:
        raise BenchmarkUnreadable(f"This cannot be read: {error}") from None
    bad = [record for record in found if isinstance(record, BadLine)]
    if bad:
        raise BenchmarkUnreadable(f"{path}: {len(bad)} records are bad; {bad[0]}")
    return [record for record in found if isinstance(record, TraceRecord) and record.steps]


def _first_error(record: TraceRecord) -> int:
    turns = record.submissions[0].turns
    said = [turn.position for turn in turns for judgment in turn.shown or () if judgment.rating == -1]
    return min(said, default=NO_ERROR)
