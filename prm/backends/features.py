"""What the builtin PRM sees of a step: the step, the steps before it, the problem. Nothing that comes later.

Anything that knows how long the trace is, or that a step is its last, is a leak: labels end with the first error, so it
would be right every time and know nothing.
"""

import itertools
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from labeling.agreement.arrays import Floats, Ints
from prm.backends import arithmetic

BUCKETS = 1 << 14
_WORD = re.compile(r"[a-zA-Z]+|\\[a-zA-Z]+|[=+*/<>^-]")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SURE = re.compile(r"\b(?:therefore|thus|hence|so|clearly|obviously)\b", re.IGNORECASE)
_UNSURE = re.compile(r"\b(?:assume|suppose|maybe|perhaps|probably|approximately|about|guess|if)\b", re.IGNORECASE)
_SECOND_THOUGHT = re.compile(r"\b(?:wait|however|but|actually|instead|mistake|correct)\b", re.IGNORECASE)
_ANSWER = re.compile(r"\\boxed|\banswer\b|####", re.IGNORECASE)

NAMES = (
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
)


@dataclass
class _Prefix:
    """What has been read so far."""

    words: set[str]
    numbers: set[str]
    problem: set[str]
    last: set[str] = field(default_factory=set)
    characters: int = 0
    n_false: int = 0


def of_trace(problem: str, steps: Sequence[str]) -> Floats:
    """(steps, NAMES): one row per step."""
    words = set(_words(problem))
    prefix = _Prefix(words=set(words), numbers=set(_NUMBER.findall(problem)), problem=words)
    rows = [_row(step, index, prefix) for index, step in enumerate(steps)]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(NAMES))


def hashed_words(step: str) -> tuple[Ints, Floats]:
    """The buckets of a step's words and pairs of words, and their weights: a bag of length one."""
    words = list(_words(step))
    terms = words + [f"{first} {second}" for first, second in itertools.pairwise(words)]
    buckets, counts = np.unique([zlib.crc32(term.encode()) % BUCKETS for term in terms] or [0], return_counts=True)
    weights = np.log1p(counts) * bool(terms)
    return buckets.astype(np.int64), weights / max(float(np.sqrt((weights**2).sum())), 1.0)


def _row(step: str, index: int, prefix: _Prefix) -> list[float]:
    """The features of one step; the prefix then holds the step too."""
    words, numbers = list(_words(step)), _NUMBER.findall(step)
    seen, new = set(words), [number for number in numbers if number not in prefix.numbers]
    n_true, n_false = arithmetic.check(step)
    row = [
        np.log1p(len(step)),
        np.log1p(len(words)),
        np.log1p(index),
        np.log1p(prefix.characters),
        np.log1p(len(numbers)),
        np.log1p(len(new)),
        len(new) / max(len(numbers), 1),
        _size(numbers),
        np.log1p(sum("." in number for number in numbers)),
        np.log1p(step.count("=")),
        float(min(n_false, 3)),
        np.log1p(n_true),
        float(min(prefix.n_false, 3)),
        np.log1p(sum(word in "=+*/<>^-" for word in words)),
        np.log1p(step.count("\\")),
        _overlap(seen, prefix.problem),
        _overlap(seen, prefix.last),
        1 - _overlap(seen, prefix.words),
        *(float(min(len(pattern.findall(step)), 3)) for pattern in (_SURE, _UNSURE, _SECOND_THOUGHT, _ANSWER)),
        sum(map(len, words)) / max(len(words), 1),
    ]
    prefix.words |= seen
    prefix.numbers |= set(numbers)
    prefix.last, prefix.characters, prefix.n_false = seen, prefix.characters + len(step), prefix.n_false + n_false
    return row


def _words(text: str) -> Iterator[str]:
    return (match.group().lower() for match in _WORD.finditer(text))


def _overlap(seen: set[str], others: set[str]) -> float:
    return len(seen & others) / max(len(seen), 1)


def _size(numbers: list[str]) -> float:
    """The number of digits before the point of the largest number."""
    return max((len(number.split(".")[0].replace(",", "")) for number in numbers), default=0)
