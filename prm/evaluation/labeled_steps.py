"""The labelled steps that a PRM is judged on: up to and with the first error of each trace, nothing behind it."""

from dataclasses import dataclass

import numpy as np

from stats.arrays import Bools, Floats, Ints

NO_ERROR = -1


@dataclass(frozen=True)
class LabeledSteps:
    """One row per step: what the PRM says, what people say, its size, its place; traces and the like number from 0."""

    p_wrong: Floats
    is_wrong: Bools
    log_characters: Floats
    indexes: Ints
    traces: Ints
    problems: Ints
    sources: Ints

    def __post_init__(self) -> None:
        columns = (self.is_wrong, self.log_characters, self.indexes, self.traces, self.problems, self.sources)
        if any(len(column) != len(self.p_wrong) for column in columns):
            raise ValueError("every labelled step has a score, a label, a size, a place, a trace, a problem, a source")
        if not np.isfinite(self.p_wrong).all():
            raise ValueError("a PRM was not judged: it gave scores that are no numbers")

    @property
    def n_problems(self) -> int:
        return int(self.problems.max()) + 1 if len(self.problems) else 0

    def take(self, rows: Ints) -> "LabeledSteps":
        """Some steps, each as often as it is named."""
        return LabeledSteps(
            self.p_wrong[rows],
            self.is_wrong[rows],
            self.log_characters[rows],
            self.indexes[rows],
            self.traces[rows],
            self.problems[rows],
            self.sources[rows],
        )

    def put(self, p_wrong: Floats) -> "LabeledSteps":
        """The same steps under another PRM."""
        return LabeledSteps(
            p_wrong, self.is_wrong, self.log_characters, self.indexes, self.traces, self.problems, self.sources
        )


def mask_labeled(*, lengths: Ints, first_errors: Ints) -> Bools:
    """Which steps, traces laid end to end, carry a label when the first error (NONE for none) is all that is known."""
    last = np.where(first_errors == NO_ERROR, lengths - 1, first_errors)
    return np.asarray(step_indexes(lengths) <= np.repeat(last, lengths))


def step_indexes(lengths: Ints) -> Ints:
    """The place of every step within its trace."""
    starts = np.cumsum(lengths) - lengths
    return np.asarray(np.arange(int(lengths.sum())) - np.repeat(starts, lengths), dtype=np.int64)


def build_labeled_steps(
    *, p_wrong: Floats, characters: Ints, lengths: Ints, first_errors: Ints, problems: Ints, sources: Ints
) -> LabeledSteps:
    """From all steps of traces, laid end to end, and one first error, problem and source per trace."""
    at, trace = step_indexes(lengths), np.repeat(np.arange(len(lengths)), lengths)
    kept = mask_labeled(lengths=lengths, first_errors=first_errors)
    return LabeledSteps(
        p_wrong=p_wrong[kept],
        is_wrong=(at == first_errors[trace])[kept],
        log_characters=np.log(np.maximum(characters[kept], 1)),
        indexes=at[kept],
        traces=trace[kept],
        problems=problems[trace][kept],
        sources=sources[trace][kept],
    )
