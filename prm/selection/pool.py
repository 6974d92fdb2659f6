"""The traces that can be drawn, and where their first errors probably are.

    S_i = Π_{j ≤ i} (1 - h_j),   P(E = i) = S_{i-1} h_i,   P(none) = S_T

h_i is the hazard of step i, E the position of the first error, S_i the probability that steps 1 to i are all right.
Discrete-time survival: D. R. Cox (1972), doi:10.1111/j.2517-6161.1972.tb00899.x.
"""

from dataclasses import dataclass

import numpy as np

from stats.arrays import Bools, Floats, Ints

_CERTAIN = 1 - 1e-9


class InvalidPool(ValueError):
    """The columns do not belong together, a trace has no step, or a hazard is not a probability."""


@dataclass(frozen=True)
class Pool:
    """The steps of all traces end to end, with one entry per step or per trace in each column.

    Per step: P(wrong | all before right), words, characters. Per trace: length, problem, domain, outcome.
    `is_answer_wrong` is false if the outcome is right or unknown. Problems and domains are numbered from 0.
    """

    lengths: Ints
    hazards: Floats
    words: Ints
    characters: Ints
    problems: Ints
    domains: Ints
    is_answer_wrong: Bools

    def __post_init__(self) -> None:
        steps = {len(self.hazards), len(self.words), len(self.characters)}
        traces = {len(self.lengths), len(self.problems), len(self.domains), len(self.is_answer_wrong)}
        if len(steps) != 1 or len(traces) != 1 or self.lengths.sum() != len(self.hazards):
            raise InvalidPool("every step needs a hazard and a size, every trace a length, a problem and a domain")
        if len(self.lengths) and self.lengths.min() < 1:
            raise InvalidPool("every trace in the pool needs at least one step")
        if len(self.hazards) and not (self.hazards.min() >= 0 and self.hazards.max() <= 1):
            raise InvalidPool("hazards must be probabilities: recalibrate the PRM")

    @property
    def n(self) -> int:
        return len(self.lengths)

    @property
    def starts(self) -> Ints:
        return np.asarray(np.cumsum(self.lengths) - self.lengths, dtype=np.int64)

    @property
    def traces(self) -> Ints:
        """The trace of every step."""
        return np.repeat(np.arange(self.n), self.lengths)

    def sum_per_trace(self, values: Floats) -> Floats:
        """Add up the values of each trace's steps."""
        return np.bincount(self.traces, weights=values, minlength=self.n).astype(np.float64)


def still_right_before(pool: Pool) -> Floats:
    """S_{i-1} of every step."""
    passed = np.log1p(-np.minimum(pool.hazards, _CERTAIN))
    before = np.cumsum(passed) - passed
    return np.exp(np.minimum(before - before[pool.starts][pool.traces], 0.0)) if pool.n else passed


def first_error_probabilities(pool: Pool) -> Floats:
    """P(E = i) of every step."""
    return still_right_before(pool) * pool.hazards


def no_error_probabilities(pool: Pool) -> Floats:
    """P(none) of every trace, computed as the remainder so that the probabilities of a trace add up to 1."""
    return np.clip(1.0 - pool.sum_per_trace(first_error_probabilities(pool)), 0.0, 1.0)
