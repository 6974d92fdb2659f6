"""One derivation told step by step, with at most one slip in it. Pure.

A family of problems is a function that draws its numbers, asks, and says its steps; wherever a solver could slip it
takes a value by `path.value(...)`. The steps before the slip are the same with and without it, so the right telling's
step is an alternative to the wrong one's.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from demo.slips import Slips

ARITHMETIC = "arithmetic slip"
SIGN = "sign slip"
CASE = "dropped case"
FORMULA = "wrong formula"
MISREAD = "misread problem"
ASIDE_SHARE = 0.25  # how often a derivation takes the chance to say something that does not move it on


@dataclass
class Derivation(Slips):
    numbers: random.Random  # what the problem is about: the same for every trace of a problem
    wording: random.Random  # how it is said
    problem: str = ""
    reference_answer: str = ""
    answer: str = ""
    facts: dict[str, object] = field(default_factory=dict)
    steps: list[tuple[str, int | None]] = field(default_factory=list)  # text and truth

    def ask(self, problem: str, answer: object, **facts: object) -> None:
        self.problem, self.reference_answer, self.facts = problem, format_number(answer), facts

    def place(self) -> int:
        return len(self.steps)

    def say(self, text: str) -> None:
        self.steps.append((text, self.truth()))

    def aside(self, *texts: str) -> None:
        """Now and then something true that does not move the solution forward."""
        chance, text = self.wording.random(), self.wording.choice(texts)
        if chance < ASIDE_SHARE:
            self.steps.append((text, None if self.has_slipped else 0))

    def one_of(self, *texts: str) -> str:
        return self.wording.choice(texts)

    def conclude(self, text: str, answer: object) -> None:
        self.answer = format_number(answer)
        self.say(f"{text} $\\boxed{{{self.answer}}}$.")


@dataclass(frozen=True)
class ProblemFamily:
    name: str
    domain: str
    derive: Callable[[Derivation], None]


def format_number(value: object) -> str:
    """A number as it is written in a formula."""
    if isinstance(value, Fraction) and value.denominator != 1:
        return f"{'-' if value < 0 else ''}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"
    return str(value)


def format_added(value: int) -> str:
    """A number as the next term of a sum: ` + 3` or ` - 3`."""
    return f" + {value}" if value >= 0 else f" - {-value}"


def format_factor(value: int) -> str:
    """A number as a factor: negative ones in brackets."""
    return str(value) if value >= 0 else f"({value})"


def format_product(values: Iterable[object]) -> str:
    return r" \cdot ".join(map(str, values))


def format_sum(values: Iterable[object]) -> str:
    """A sum as it is written: a negative term is subtracted."""
    return " + ".join(map(str, values)).replace("+ -", "- ")
