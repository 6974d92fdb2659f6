"""The traces that can be drawn, their steps laid end to end."""

from dataclasses import dataclass

import numpy as np

from stats.arrays import Bools, Floats, Ints


@dataclass(frozen=True)
class Pool:
    """Per step: P(wrong | all before right), words, characters. Per trace: length, problem, domain, outcome.

    `is_answer_wrong` is false where the outcome is right or unknown. Problems and domains are numbered from 0.
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
            raise ValueError("every step has a hazard and a size, every trace a length, a problem, a domain")
        if len(self.lengths) and self.lengths.min() < 1:
            raise ValueError("a trace in the pool has at least one step")
        if len(self.hazards) and not (self.hazards.min() >= 0 and self.hazards.max() <= 1):
            raise ValueError("a hazard is a probability: recalibrate a PRM that says something else")

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

    def per_trace(self, of_steps: Floats) -> Floats:
        """Add up a number of every step within its trace."""
        return np.bincount(self.traces, weights=of_steps, minlength=self.n).astype(np.float64)
