"""Files of traces whose first error is known (ProcessBench's form), as arrays. Reads files alone, no database."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from labeling.agreement.arrays import Bools, Floats, Ints
from labeling.importing import files
from labeling.importing.readers import formats
from labeling.importing.records import BadLine, TraceRecord
from prm.backends.asked import Trace
from prm.evaluation import contamination
from prm.evaluation.report import Judged
from prm.evaluation.steps import NONE


class BadBenchmark(Exception):
    """The file cannot be judged on; says where."""


@dataclass(frozen=True)
class Benchmark:
    """Traces of one or several files; `problems` number the different problems of the text, `sources` the files."""

    traces: list[Trace]
    first_errors: Ints
    problems: Ints
    sources: Ints
    is_answer_wrong: Bools  # false where the outcome is right or unknown

    @property
    def lengths(self) -> Ints:
        return np.array([len(trace.steps) for trace in self.traces], dtype=np.int64)

    def judged(self, p_wrong: Floats) -> Judged:
        characters = np.array([len(step) for trace in self.traces for step in trace.steps], dtype=np.int64)
        return Judged(p_wrong, characters, self.lengths, self.first_errors, self.problems, self.sources)


def read(paths: Sequence[Path]) -> Benchmark:
    traces: list[Trace] = []
    errors: list[int] = []
    sources: list[int] = []
    wrong: list[bool] = []
    for number, path in enumerate(paths):
        for record in _records(path):
            traces.append(Trace(record.problem.text, [step.options[0].text for step in record.steps]))
            errors.append(_first_error(record))
            sources.append(number)
            wrong.append(record.is_right is False)
    if not traces:
        raise BadBenchmark("There is no trace in " + ", ".join(map(str, paths)))
    # Numbered by a hash of the text, so that folds are the same whatever the order of the files.
    known = {digest: n for n, digest in enumerate(sorted({contamination.digest(trace.problem) for trace in traces}))}
    problems = [known[contamination.digest(trace.problem)] for trace in traces]
    numbers = [np.array(column, dtype=np.int64) for column in (errors, problems, sources)]
    return Benchmark(traces, numbers[0], numbers[1], numbers[2], np.array(wrong, dtype=np.bool_))


def _records(path: Path) -> list[TraceRecord]:
    try:
        with files.open_file(path) as stream:
            found = list(formats.named("processbench").read(stream))
    except files.Unreadable as error:
        raise BadBenchmark(f"This cannot be read: {error}") from None
    bad = [record for record in found if isinstance(record, BadLine)]
    if bad:
        raise BadBenchmark(f"{path}: {len(bad)} records are bad; {bad[0]}")
    return [record for record in found if isinstance(record, TraceRecord) and record.steps]


def _first_error(record: TraceRecord) -> int:
    turns = record.submissions[0].turns
    said = [turn.position for turn in turns for judgment in turn.shown or () if judgment.rating == -1]
    return min(said, default=NONE)
