"""One step-by-step derivation with at most one slip. Pure.

A problem family is a function that draws numbers, states the problem, and writes the steps. It gets each value that
could go wrong from `path.value(...)`. The steps before a slip are the same with and without it, so the correct step is
an alternative to the wrong one.
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
ASIDE_SHARE = 0.25  # the share of possible asides that are written


@dataclass
class Derivation(Slips):
    numbers: random.Random  # for the problem: the same for all of its traces
    wording: random.Random  # for the wording of one trace
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
        """Sometimes add a true step that does not move the solution forward."""
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
    """Format a number for a formula."""
    if isinstance(value, Fraction) and value.denominator != 1:
        return f"{'-' if value < 0 else ''}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"
    return str(value)


def format_added(value: int) -> str:
    """Format a number as the next term of a sum: ` + 3` or ` - 3`."""
    return f" + {value}" if value >= 0 else f" - {-value}"


def format_factor(value: int) -> str:
    """Format a number as a factor, with parentheses if it is negative."""
    return str(value) if value >= 0 else f"({value})"


def format_product(values: Iterable[object]) -> str:
    return r" \cdot ".join(map(str, values))


def format_sum(values: Iterable[object]) -> str:
    """Format a sum; a negative term is subtracted."""
    return " + ".join(map(str, values)).replace("+ -", "- ")
