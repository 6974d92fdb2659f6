"""What a backend is asked and what it must answer: for a problem and steps, one number per step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from jobs.failures import JobFailed
from prm.selection.semantics import Semantics
from stats.arrays import Floats


@dataclass(frozen=True)
class ScorerInput:
    problem: str
    steps: Sequence[str]


class ScoringBackend(Protocol):
    """Prefix-only: what comes behind a step does not change its number. Gives one array per trace, in order."""

    def score(self, traces: Sequence[ScorerInput]) -> list[Floats]: ...


class BackendError(JobFailed):
    """No scores came. The text says what happened and what to do; old scores stay as they are."""


class BackendUnreachable(BackendError):
    """Nobody answers, or not in time, or with an error, however often it is tried."""


class BadScores(BackendError):
    """An answer came and cannot be used."""


def validate_scores(found: Sequence[Floats], traces: Sequence[ScorerInput], semantics: str) -> list[Floats]:
    """The same numbers, if there is a finite one in range for every step; else BadScores."""
    if len(found) != len(traces):
        raise BadScores(f"The model answered for {len(found)} traces, {len(traces)} were asked.")
    for numbers, trace in zip(found, traces, strict=True):
        if numbers.shape != (len(trace.steps),):
            raise BadScores(
                f"The model gave {len(numbers)} scores for the {len(trace.steps)} steps of “{trace.problem[:60]}”."
                " There must be one for each step."
            )
        if not np.isfinite(numbers).all():
            raise BadScores(f"The model gave a score that is no number for “{trace.problem[:60]}”.")
        if semantics != Semantics.PROGRESS and len(numbers) and (numbers.min() < 0 or numbers.max() > 1):
            raise BadScores(
                f"A score of {numbers.min():g} to {numbers.max():g} is no probability. Register a PRM that gives"
                " signed differences with the semantics “progress”."
            )
    return list(found)
