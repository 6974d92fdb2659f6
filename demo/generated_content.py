"""What a generator tells: a problem, a trace, its steps, and the truth about each. Pure."""

import hashlib
import random
from dataclasses import dataclass, field


@dataclass(frozen=True)
class GeneratedPart:
    """A piece of a step that is more than plain text: a call, its result, a diff."""

    kind: str
    text: str
    name: str = ""
    call_ref: str = ""


@dataclass(frozen=True)
class GeneratedOption:
    text: str
    rating: int | None  # the truth: 1 right, 0 right without moving on, -1 wrong; None after the first error
    parts: tuple[GeneratedPart, ...] = ()


@dataclass(frozen=True)
class GeneratedStep:
    """Option 0 is the trace's own; the others are alternatives to it."""

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
    error_kind: str = ""  # what sort of slip the first error is; "" where there is none
    ref: str = ""
    facts: dict[str, object] = field(default_factory=dict)  # the numbers that the problem was made from

    @property
    def first_error(self) -> int | None:
        """The position of the first wrong step, or None."""
        return next((place for place, step in enumerate(self.steps) if step.rating == -1), None)


def seeded_random(*words: object) -> random.Random:
    """Chance that is the same on every machine and in every year: seeded by the words, never by Python's hash()."""
    return random.Random(hashlib.sha256("\x1f".join(map(str, words)).encode()).digest())  # noqa: S311  no secret in it
