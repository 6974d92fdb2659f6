"""The traces that a PRM is evaluated on, and their labeled steps: those up to and including each first error."""

from dataclasses import dataclass, replace

import numpy as np

from stats.arrays import Bools, Floats, Ints

NO_ERROR = -1


@dataclass(frozen=True)
class LabeledSteps:
    """One row per step: the PRM's P(wrong), the label, its size and its index; traces, problems and sources from 0."""

    p_wrong: Floats
    is_wrong: Bools
    log_characters: Floats
    indexes: Ints
    traces: Ints
    problems: Ints
    sources: Ints

    def __post_init__(self) -> None:
        if len({len(column) for column in vars(self).values()}) != 1:
            raise ValueError("all columns of labeled steps must have the same length")
        if not np.isfinite(self.p_wrong).all():
            raise ValueError("every P(wrong) must be a finite number")

    @property
    def n_problems(self) -> int:
        return int(self.problems.max()) + 1 if len(self.problems) else 0

    def take(self, rows: Ints) -> "LabeledSteps":
        """Return these rows; a row may be given several times."""
        return LabeledSteps(**{name: column[rows] for name, column in vars(self).items()})

    def with_scores(self, p_wrong: Floats) -> "LabeledSteps":
        """Return the same steps as another PRM scores them."""
        return replace(self, p_wrong=p_wrong)


def mask_labeled(*, lengths: Ints, first_errors: Ints) -> Bools:
    """Return which steps, traces end to end, carry a label if only the first error (or NO_ERROR) is known."""
    last = np.where(first_errors == NO_ERROR, lengths - 1, first_errors)
    return np.asarray(step_indexes(lengths) <= np.repeat(last, lengths))


def step_indexes(lengths: Ints) -> Ints:
    """Return the index of every step within its trace."""
    starts = np.cumsum(lengths) - lengths
    return np.asarray(np.arange(int(lengths.sum())) - np.repeat(starts, lengths), dtype=np.int64)


@dataclass(frozen=True)
class JudgedTraces:
    """Scored traces with their true first errors (or NO_ERROR), steps end to end; problems and sources from 0."""

    p_wrong: Floats
    characters: Ints
    lengths: Ints
    truth: Ints
    problems: Ints
    sources: Ints

    @property
    def traces(self) -> Ints:
        """The trace of every step."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def is_labeled(self) -> Bools:
        """Which of all steps carry a label."""
        return mask_labeled(lengths=self.lengths, first_errors=self.truth)

    def keep(self, is_kept: Bools) -> "JudgedTraces":
        """Return some of the traces."""
        rows = is_kept[self.traces]
        per_trace = (column[is_kept] for column in (self.lengths, self.truth, self.problems, self.sources))
        return JudgedTraces(self.p_wrong[rows], self.characters[rows], *per_trace)

    def labeled_steps(self) -> LabeledSteps:
        rows = self.is_labeled
        indexes, traces = step_indexes(self.lengths)[rows], self.traces[rows]
        return LabeledSteps(
            p_wrong=self.p_wrong[rows],
            is_wrong=indexes == self.truth[traces],
            log_characters=np.log(np.maximum(self.characters[rows], 1)),
            indexes=indexes,
            traces=traces,
            problems=self.problems[traces],
            sources=self.sources[traces],
        )
