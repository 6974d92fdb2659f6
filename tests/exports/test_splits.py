"""The algorithm of splits: problems keep their split, and similar problems share one. Without a database."""

from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from exports import splits
from exports.splits import SplitAssigner, SplitInterval
from formats.near_duplicates import BANDS, SLOTS, THRESHOLD, compute_signature, digest_normalized

SHARES = [(0.1, 0.1), (0.3, 0.3), (0.0, 0.5)]
WORDS = [f"word{number}" for number in range(40)]


def make_text(changed: Iterable[int]) -> str:
    """Return a long text with some changed words: with few changes it is similar to the others, with many it is not."""
    words = list(WORDS)
    for place in changed:
        words[place % len(words)] = f"own{place}"
    return " ".join(words)


texts = st.lists(st.frozensets(st.integers(0, 120), max_size=5).map(make_text), max_size=14, unique=True)


def is_similar(one: str, other: str) -> bool:
    """Compare two texts without an index: they agree in a whole band and in seven of ten slots."""
    agreeing = compute_signature(one) == compute_signature(other)
    return bool(agreeing.reshape(BANDS, -1).all(axis=1).any() and np.count_nonzero(agreeing) >= THRESHOLD * SLOTS)


def assign(known: list[tuple[str, SplitInterval]], new: list[str]) -> list[tuple[str, SplitInterval]]:
    assigner = SplitAssigner()
    for text, interval in known:
        assigner.add(digest_normalized(text), compute_signature(text).tobytes(), interval)
    for text in new:
        assigner.add(digest_normalized(text), compute_signature(text).tobytes())
    return [*known, *zip(new, filter(None, assigner.assign()), strict=True)]


@pytest.mark.fault
@settings(max_examples=60, deadline=None)
@given(texts)
@example([make_text(changed) for changed in ([], [3], [3, 30], [30], [30, 17], [17])])
def test_similar_problems_are_never_in_two_splits(corpus: list[str]) -> None:
    intervals = dict(assign([], corpus))
    pairs = [(one, other) for one, other in combinations(corpus, 2) if is_similar(one, other)]
    for validation, test in SHARES:
        split = {text: interval.split(validation=validation, test=test) for text, interval in intervals.items()}
        for one, other in pairs:
            assert len({split[one], split[other]} - {None}) <= 1


@settings(max_examples=60, deadline=None)
@given(texts, st.integers(0, 14), texts)
@pytest.mark.fault
def test_assignments_do_not_depend_on_later_problems(corpus: list[str], first: int, other: list[str]) -> None:
    """A corpus that grows in steps gets the same intervals as one that is imported as a whole."""
    grown = assign([], corpus[:first])
    before = dict(grown)
    grown = assign(grown, corpus[first:])
    assert grown == assign([], corpus)
    assert before.items() <= dict(grown).items()
    elsewhere = dict(assign(grown[:first], [text for text in other if text not in corpus]))
    assert before.items() <= elsewhere.items()


def test_problem_similar_to_two_others_gets_the_interval_between_them() -> None:
    left, bridge, right = make_text([1, 14]), make_text([14, 27]), make_text([27, 39])
    assert is_similar(left, bridge)
    assert is_similar(bridge, right)
    assert not is_similar(left, right)
    intervals = dict(assign([], [left, right, bridge]))
    ends = sorted(splits.split_position(digest_normalized(text)) for text in (left, right))
    assert list(intervals[bridge]) == ends
    assert intervals[left].low == intervals[left].high
    assert intervals[bridge].split(validation=0.0, test=sum(ends) / 2) is None
    assert intervals[bridge].split(validation=0.0, test=ends[0] / 2) == splits.TRAIN


def test_spellings_of_one_problem_share_an_interval() -> None:
    """Signatures depend on words: a long word and several short ones have the same letters and no common words."""
    intervals = [interval for _, interval in assign([], ["a bc def g", "abcdefg", "ABC defg."])]
    assert intervals[0] == assign([], ["abcdefg"])[0][1]
    assert len(set(intervals)) == 1


@pytest.mark.fault
def test_many_similar_problems_are_assigned_in_linear_time() -> None:
    """Comparing all pairs would take eight million comparisons."""
    assigned = assign([], [make_text([]) + f" own {number % 7}" for number in range(4000)])
    assert len({interval for _, interval in assigned}) <= 7
