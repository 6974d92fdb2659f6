"""Features of the builtin PRM: from a step, the steps before it and the problem, never from later steps.

A feature that reveals the length of the trace or its last step would leak the label: labels end with the first error,
so the last labeled step is the wrong one.

Plain arithmetic in a step is checked: 3 * 4 = 12 is true, 3 * 4 = 13 is false. Only equations with a chain of numbers
and + - * / on the left and one number on the right count; anything else (brackets, powers, variables) is ignored. A
correctly rounded result is true.
"""

import itertools
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from stats.arrays import Floats, Ints

WORD_BUCKETS = 1 << 14
_WORD = re.compile(r"[a-zA-Z]+|\\[a-zA-Z]+|[=+*/<>^-]")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SIGNAL_WORDS = {
    "sure": re.compile(r"\b(?:therefore|thus|hence|so|clearly|obviously)\b", re.IGNORECASE),
    "unsure": re.compile(r"\b(?:assume|suppose|maybe|perhaps|probably|approximately|about|guess|if)\b", re.IGNORECASE),
    "second_thought": re.compile(r"\b(?:wait|however|but|actually|instead|mistake|correct)\b", re.IGNORECASE),
    "answer": re.compile(r"\\boxed|\banswer\b|####", re.IGNORECASE),
}


@dataclass
class _Prefix:
    """The problem and the steps so far; `size` and `longest` are sum and maximum of the steps' log characters."""

    problem: str
    last: set[str] = field(default_factory=set)
    size: float = 0.0
    longest: float = 0.0
    characters: int = 0
    n_false: int = 0

    def __post_init__(self) -> None:
        self.problem_words, self.problem_numbers = set(_words(self.problem)), set(_NUMBER.findall(self.problem))
        self.words, self.numbers = set(self.problem_words), set(self.problem_numbers)

    def add(self, step: str, words: set[str], numbers: list[str], n_false: int) -> None:
        self.words |= words
        self.numbers |= set(numbers)
        self.last, self.characters, self.n_false = words, self.characters + len(step), self.n_false + n_false
        self.size += math.log1p(len(step))
        self.longest = max(self.longest, math.log1p(len(step)))


def compute_features(problem: str, steps: Sequence[str]) -> Floats:
    """Return one row per step, with the columns of FEATURE_NAMES."""
    prefix = _Prefix(problem)
    rows = [list(_feature_row(step, index, prefix).values()) for index, step in enumerate(steps)]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(FEATURE_NAMES))


def hashed_words(step: str) -> tuple[Ints, Floats]:
    """Return the hash buckets of a step's words and word pairs, and their weights (a vector of length one)."""
    words = list(_words(step))
    terms = words + [f"{first} {second}" for first, second in itertools.pairwise(words)]
    buckets, counts = np.unique([zlib.crc32(term.encode()) % WORD_BUCKETS for term in terms] or [0], return_counts=True)
    weights = np.log1p(counts) * bool(terms)
    return buckets.astype(np.int64), weights / max(float(np.sqrt((weights**2).sum())), 1.0)


def _feature_row(step: str, index: int, prefix: _Prefix) -> dict[str, float]:
    """Compute one step's features by name, and add the step to the prefix."""
    words, numbers = list(_words(step)), _NUMBER.findall(step)
    distinct, new = set(words), [number for number in numbers if number not in prefix.numbers]
    n_true, n_false = count_equations(step)
    size = math.log1p(len(step))
    row = {
        "log_characters": size,
        "log_words": math.log1p(len(words)),
        "log_index": math.log1p(index),
        "log_characters_before": math.log1p(prefix.characters),
        "numbers": math.log1p(len(numbers)),
        "numbers_new": math.log1p(len(new)),
        "share_of_numbers_new": len(new) / max(len(numbers), 1),
        "largest_number": _count_digits(numbers),
        "decimals": math.log1p(sum("." in number for number in numbers)),
        "equations": math.log1p(step.count("=")),
        "equations_false": float(min(n_false, 3)),
        "equations_true": math.log1p(n_true),
        "false_before": float(min(prefix.n_false, 3)),
        "operators": math.log1p(sum(word in "=+*/<>^-" for word in words)),
        "commands": math.log1p(step.count("\\")),
        "words_of_problem": _overlap(distinct, prefix.problem_words),
        "words_of_step_before": _overlap(distinct, prefix.last),
        "words_new": 1 - _overlap(distinct, prefix.words),
        **{name: float(min(len(pattern.findall(step)), 3)) for name, pattern in _SIGNAL_WORDS.items()},
        "mean_word_length": sum(map(len, words)) / max(len(words), 1),
        "longer_than_before": size - prefix.size / index if index else 0.0,
        "longer_than_longest_before": size - prefix.longest if index else 0.0,
        "log_characters_of_problem": math.log1p(len(prefix.problem)),
        "numbers_of_problem": math.log1p(len(prefix.problem_numbers)),
        "numbers_known": math.log1p(len(prefix.numbers)),
    }
    prefix.add(step, distinct, numbers, n_false)
    return row


def _words(text: str) -> Iterator[str]:
    return (match.group().lower() for match in _WORD.finditer(text))


def _overlap(words: set[str], others: set[str]) -> float:
    return len(words & others) / max(len(words), 1)


def _count_digits(numbers: list[str]) -> float:
    """Count the digits before the point of the longest number."""
    return max((len(number.split(".")[0].replace(",", "")) for number in numbers), default=0)


# --- arithmetic -------------------------------------------------------------------------------------------------------

_TIMES = re.compile(r"\\times|\\cdot|×|·")
_DIVIDE = re.compile(r"\\div|÷")
_FRACTION = re.compile(r"\\[dt]?frac\{(-?\d+(?:\.\d+)?)\}\{(-?\d+(?:\.\d+)?)\}")
_OPERAND = r"-?\$?\d+(?:,\d{3})*(?:\.\d+)?"
_EQUATION = re.compile(
    rf"(?<![\w.)\]}}^*/+-])({_OPERAND}(?:\s*[-+*/]\s*{_OPERAND})+)"  # a chain of numbers from its start
    rf"\s*=\s*({_OPERAND})(?!\d|%|\s*[-+*/^(]|[a-zA-Z]|\\[a-zA-Z])"  # and a complete result
)
_TERM = re.compile(rf"\s*([-+*/]?)\s*({_OPERAND})")
_MAX_VALUE = 1e15
_MAX_CHARACTERS = 4_000  # the pattern tries every term of a chain as its start, which is quadratic


def count_equations(step: str) -> tuple[int, int]:
    """Return the number of true and of false equations in a step."""
    results = [_is_true(left, right) for left, right in _EQUATION.findall(_replace_latex(step[:_MAX_CHARACTERS]))]
    return results.count(True), results.count(False)


def _replace_latex(step: str) -> str:
    step = _FRACTION.sub(r"\1 / \2", step)
    return _DIVIDE.sub("/", _TIMES.sub("*", step)).replace("\\$", "").replace("$", "")


def _is_true(left: str, right: str) -> bool | None:
    value = _evaluate(left)
    if value is None or abs(value) > _MAX_VALUE:
        return None
    stated = _parse_number(right)
    places = len(right.split(".")[1]) if "." in right else 0
    is_rounded = places > 0 or value % 1 != 0
    return abs(value - stated) <= (0.51 * 10.0**-places if is_rounded else 1e-9)


def _evaluate(chain: str) -> float | None:
    """Evaluate a chain by operator precedence, from the left; None for a division by zero.

    A minus at the start or after an operator is a sign.
    """
    terms: list[float] = []
    for symbol, text in _TERM.findall(chain):
        number = _parse_number(text)
        if symbol == "*":
            terms[-1] *= number
        elif symbol == "/" and number == 0:
            return None
        elif symbol == "/":
            terms[-1] /= number
        else:
            terms.append(-number if symbol == "-" else number)
    return sum(terms)


def _parse_number(text: str) -> float:
    return float(text.replace(",", "").replace("$", ""))


FEATURE_NAMES = tuple(_feature_row("", 0, _Prefix("")))
