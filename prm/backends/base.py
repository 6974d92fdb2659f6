"""The contract of a scoring backend: a problem and its steps in, one number per step out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from jobs.failures import JobFailed
from prm.selection.hazards import Semantics
from stats.arrays import Floats


@dataclass(frozen=True)
class ScorerInput:
    problem: str
    steps: Sequence[str]


class ScoringBackend(Protocol):
    """Prefix-only: the score of a step never depends on later steps. Returns one array per trace, in order."""

    def score(self, traces: Sequence[ScorerInput]) -> list[Floats]: ...


class BackendError(JobFailed):
    """The backend returned no scores. The message says what happened and what to do; earlier scores are unchanged."""


class InvalidAddress(BackendError):
    """The address must not be called."""


class BackendUnreachable(BackendError):
    """The backend did not answer successfully and in time on any attempt."""


class RequestRefused(BackendError):
    """The backend answered with a status that a retry would not change."""

    def __init__(self, status: int) -> None:
        super().__init__(f"The scorer answered {status}. Check its address, model name and secret, and its log.")
        self.status = status


class BadScores(BackendError):
    """The backend answered, but its scores are unusable."""


class WrongScoreCount(BadScores):
    """The number of traces or steps in the answer differs from the request."""


class WrongModel(BadScores):
    """The address now serves another model than the registered one."""


def validate_scores(scores: Sequence[Floats], traces: Sequence[ScorerInput], semantics: str) -> list[Floats]:
    """Return the scores unchanged if every step has a finite one in range; raise BadScores otherwise."""
    if len(scores) != len(traces):
        raise WrongScoreCount(f"The model answered for {len(scores)} traces instead of {len(traces)}.")
    for numbers, trace in zip(scores, traces, strict=True):
        _validate_trace(numbers, trace, semantics)
    return list(scores)


def _validate_trace(numbers: Floats, trace: ScorerInput, semantics: str) -> None:
    problem, n_steps = f"“{trace.problem[:60]}”", len(trace.steps)
    if numbers.shape != (n_steps,):
        raise WrongScoreCount(
            f"The model returned {len(numbers)} scores for the {n_steps} steps of {problem}. One per step is needed."
        )
    if not np.isfinite(numbers).all():
        raise BadScores(f"The model returned a score that is not a finite number for {problem}.")
    if semantics != Semantics.PROGRESS and n_steps and (numbers.min() < 0 or numbers.max() > 1):
        raise BadScores(
            f"The model returned scores from {numbers.min():g} to {numbers.max():g} for {problem}; probabilities are"
            " between 0 and 1. Register a PRM that returns signed differences with the semantics “progress”."
        )
