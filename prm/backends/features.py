"""Features of the builtin PRM: from a step, the steps before it and the problem, never from later steps.

A feature that reveals the length of the trace or its last step would leak the label: labels end with the first error,
so the last labeled step is the wrong one.
"""

import itertools
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from prm.backends import arithmetic
from stats.arrays import Floats, Ints

WORD_BUCKETS = 1 << 14
_WORD = re.compile(r"[a-zA-Z]+|\\[a-zA-Z]+|[=+*/<>^-]")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SURE = re.compile(r"\b(?:therefore|thus|hence|so|clearly|obviously)\b", re.IGNORECASE)
_UNSURE = re.compile(r"\b(?:assume|suppose|maybe|perhaps|probably|approximately|about|guess|if)\b", re.IGNORECASE)
_SECOND_THOUGHT = re.compile(r"\b(?:wait|however|but|actually|instead|mistake|correct)\b", re.IGNORECASE)
_ANSWER = re.compile(r"\\boxed|\banswer\b|####", re.IGNORECASE)

FEATURE_NAMES = (
    "log_characters",
    "log_words",
    "log_index",
    "log_characters_before",
    "numbers",
    "numbers_new",
    "share_of_numbers_new",
    "largest_number",
    "decimals",
    "equations",
    "equations_false",
    "equations_true",
    "false_before",
    "operators",
    "commands",
    "words_of_problem",
    "words_of_step_before",
    "words_new",
    "sure",
    "unsure",
    "second_thought",
    "answer",
    "mean_word_length",
    "longer_than_before",
    "longer_than_longest_before",
    "log_characters_of_problem",
    "numbers_of_problem",
    "numbers_known",
)


@dataclass
class _Prefix:
    """The problem and the steps so far; `size` and `longest` are sum and maximum of the steps' log characters."""

    problem: str
    problem_words: set[str]
    problem_numbers: set[str]
    words: set[str]
    numbers: set[str]
    last: set[str] = field(default_factory=set)
    size: float = 0.0
    longest: float = 0.0
    characters: int = 0
    n_false: int = 0

    def add(self, step: str, words: set[str], numbers: list[str], n_false: int) -> None:
        self.words |= words
        self.numbers |= set(numbers)
        self.last, self.characters, self.n_false = words, self.characters + len(step), self.n_false + n_false
        self.size += math.log1p(len(step))
        self.longest = max(self.longest, math.log1p(len(step)))


def compute_features(problem: str, steps: Sequence[str]) -> Floats:
    """Return one row per step, with the columns of FEATURE_NAMES."""
    words, numbers = set(_words(problem)), set(_NUMBER.findall(problem))
    prefix = _Prefix(problem, words, numbers, words=set(words), numbers=set(numbers))
    rows = [_feature_row(step, index, prefix) for index, step in enumerate(steps)]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(FEATURE_NAMES))


def hashed_words(step: str) -> tuple[Ints, Floats]:
    """Return the hash buckets of a step's words and word pairs, and their weights (a vector of length one)."""
    words = list(_words(step))
    terms = words + [f"{first} {second}" for first, second in itertools.pairwise(words)]
    buckets, counts = np.unique([zlib.crc32(term.encode()) % WORD_BUCKETS for term in terms] or [0], return_counts=True)
    weights = np.log1p(counts) * bool(terms)
    return buckets.astype(np.int64), weights / max(float(np.sqrt((weights**2).sum())), 1.0)


def _feature_row(step: str, index: int, prefix: _Prefix) -> list[float]:
    """Compute one step's features in the order of FEATURE_NAMES, and add the step to the prefix."""
    words, numbers = list(_words(step)), _NUMBER.findall(step)
    distinct, new = set(words), [number for number in numbers if number not in prefix.numbers]
    n_true, n_false = arithmetic.count_equations(step)
    row = [
        math.log1p(len(step)),
        math.log1p(len(words)),
        math.log1p(index),
        math.log1p(prefix.characters),
        math.log1p(len(numbers)),
        math.log1p(len(new)),
        len(new) / max(len(numbers), 1),
        _count_digits(numbers),
        math.log1p(sum("." in number for number in numbers)),
        math.log1p(step.count("=")),
        float(min(n_false, 3)),
        math.log1p(n_true),
        float(min(prefix.n_false, 3)),
        math.log1p(sum(word in "=+*/<>^-" for word in words)),
        math.log1p(step.count("\\")),
        _overlap(distinct, prefix.problem_words),
        _overlap(distinct, prefix.last),
        1 - _overlap(distinct, prefix.words),
        *(float(min(len(pattern.findall(step)), 3)) for pattern in (_SURE, _UNSURE, _SECOND_THOUGHT, _ANSWER)),
        sum(map(len, words)) / max(len(words), 1),
        *_compare_with_prefix(step, index, prefix),
    ]
    prefix.add(step, distinct, numbers, n_false)
    return row


def _compare_with_prefix(step: str, index: int, prefix: _Prefix) -> list[float]:
    """Compare the step's length with the prefix, and count what the problem provides."""
    size = math.log1p(len(step))
    return [
        size - prefix.size / index if index else 0.0,
        size - prefix.longest if index else 0.0,
        math.log1p(len(prefix.problem)),
        math.log1p(len(prefix.problem_numbers)),
        math.log1p(len(prefix.numbers)),
    ]


def _words(text: str) -> Iterator[str]:
    return (match.group().lower() for match in _WORD.finditer(text))


def _overlap(words: set[str], others: set[str]) -> float:
    return len(words & others) / max(len(words), 1)


def _count_digits(numbers: list[str]) -> float:
    """Count the digits before the point of the longest number."""
    return max((len(number.split(".")[0].replace(",", "")) for number in numbers), default=0)
