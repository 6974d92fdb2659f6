"""A generated problem with a trace: its steps and the true rating of each. Pure."""

import hashlib
import random
from dataclasses import dataclass, field

from formats.records import ImageRecord


@dataclass(frozen=True)
class GeneratedPart:
    """A structured part of a step: a call, its result or a diff."""

    kind: str
    text: str
    name: str = ""
    call_ref: str = ""


@dataclass(frozen=True)
class GeneratedOption:
    text: str
    rating: int | None  # the true rating: 1 correct, 0 correct but no progress, -1 wrong; None after the first error
    parts: tuple[GeneratedPart, ...] = ()
    clause: str = ""  # of the guideline, which the step follows or breaks
    error_link: str = ""  # how the step relates to an earlier error (`formats.label_sets`)
    error_kind: str = ""  # its code in the rules of the project, if the step is wrong
    severity: int | None = None  # if the step is wrong


@dataclass(frozen=True)
class GeneratedStep:
    """A step with its options: option 0 belongs to the trace, the others are alternatives."""

    options: tuple[GeneratedOption, ...]
    kind: str = "reasoning"
    is_rateable: bool = True

    @property
    def text(self) -> str:
        return self.options[0].text

    @property
    def rating(self) -> int | None:
        return self.options[0].rating


@dataclass(frozen=True)
class GeneratedTrace:
    problem: str
    domain: str
    reference_answer: str
    steps: tuple[GeneratedStep, ...]
    answer: str
    is_right: bool
    error_kind: str = ""  # the kind of the first error; empty if there is no error
    ref: str = ""
    answers: dict[str, str] = field(default_factory=dict)  # the true ones to questions on the whole trace, by code
    pair: str = ""  # of two traces that differ by an intervention
    pair_half: str = ""
    images: tuple[ImageRecord, ...] = ()  # of the problem, whose text has a placeholder for each
    evidence: str = ""  # what shows what the model did: its reasoning, its actions, or both
    facts: dict[str, object] = field(default_factory=dict)  # the numbers in the problem, for the solvers of the tests

    @property
    def first_error(self) -> int | None:
        """Return the position of the first wrong step, or None."""
        return next((place for place, step in enumerate(self.steps) if step.rating == -1), None)


def seeded_random(*words: object) -> random.Random:
    """Return a random generator seeded by the words. Python's hash() would differ from process to process."""
    return random.Random(hashlib.sha256("\x1f".join(map(str, words)).encode()).digest())  # noqa: S311  not a secret
