"""What the builtin PRM sees of a step: the step, the steps before it, the problem. Nothing that comes later.

Anything that knows how long the trace is, or that a step is its last, is a leak: labels end with the first error, so it
would be right every time and know nothing.
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
    """What has been read so far; `size` and `longest` are the sum and the maximum of its steps' log characters."""

    problem: str
    asked: set[str]  # the problem's words
    given: set[str]  # the problem's numbers
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
    """(steps, NAMES): one row per step."""
    words, numbers = set(_words(problem)), set(_NUMBER.findall(problem))
    prefix = _Prefix(problem, asked=words, given=numbers, words=set(words), numbers=set(numbers))
    rows = [_feature_row(step, index, prefix) for index, step in enumerate(steps)]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(FEATURE_NAMES))


def hashed_words(step: str) -> tuple[Ints, Floats]:
    """The buckets of a step's words and pairs of words, and their weights: a bag of length one."""
    words = list(_words(step))
    terms = words + [f"{first} {second}" for first, second in itertools.pairwise(words)]
    buckets, counts = np.unique([zlib.crc32(term.encode()) % WORD_BUCKETS for term in terms] or [0], return_counts=True)
    weights = np.log1p(counts) * bool(terms)
    return buckets.astype(np.int64), weights / max(float(np.sqrt((weights**2).sum())), 1.0)


def _feature_row(step: str, index: int, prefix: _Prefix) -> list[float]:
    """The features of one step, in the order of NAMES; the prefix then holds the step too."""
    words, numbers = list(_words(step)), _NUMBER.findall(step)
    seen, new = set(words), [number for number in numbers if number not in prefix.numbers]
    n_true, n_false = arithmetic.count_equations(step)
    row = [
        math.log1p(len(step)),
        math.log1p(len(words)),
        math.log1p(index),
        math.log1p(prefix.characters),
        math.log1p(len(numbers)),
        math.log1p(len(new)),
        len(new) / max(len(numbers), 1),
        _size(numbers),
        math.log1p(sum("." in number for number in numbers)),
        math.log1p(step.count("=")),
        float(min(n_false, 3)),
        math.log1p(n_true),
        float(min(prefix.n_false, 3)),
        math.log1p(sum(word in "=+*/<>^-" for word in words)),
        math.log1p(step.count("\\")),
        _overlap(seen, prefix.asked),
        _overlap(seen, prefix.last),
        1 - _overlap(seen, prefix.words),
        *(float(min(len(pattern.findall(step)), 3)) for pattern in (_SURE, _UNSURE, _SECOND_THOUGHT, _ANSWER)),
        sum(map(len, words)) / max(len(words), 1),
        *_compare_with_prefix(step, index, prefix),
    ]
    prefix.add(step, seen, numbers, n_false)
    return row


def _compare_with_prefix(step: str, index: int, prefix: _Prefix) -> list[float]:
    """The step beside its trace so far, and how much the problem gives to work with."""
    size = math.log1p(len(step))
    return [
        size - prefix.size / index if index else 0.0,
        size - prefix.longest if index else 0.0,
        math.log1p(len(prefix.problem)),
        math.log1p(len(prefix.given)),
        math.log1p(len(prefix.numbers)),
    ]


def _words(text: str) -> Iterator[str]:
    return (match.group().lower() for match in _WORD.finditer(text))


def _overlap(seen: set[str], others: set[str]) -> float:
    return len(seen & others) / max(len(seen), 1)


def _size(numbers: list[str]) -> float:
    """The number of digits before the point of the largest number."""
    return max((len(number.split(".")[0].replace(",", "")) for number in numbers), default=0)
