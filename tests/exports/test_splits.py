"""Sides of a split: nobody moves, and what is alike is never parted. Without a database."""

from collections.abc import Iterable
from itertools import combinations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from exports import splits
from exports.splits import SplitAssigner, SplitInterval
from formats.near_duplicates import BANDS, SLOTS, THRESHOLD, compute_signature
from formats.normalization import digest_normalized

SHARES = [(0.1, 0.1), (0.3, 0.3), (0.0, 0.5)]
WORDS = [f"word{number}" for number in range(40)]


def text(changed: Iterable[int]) -> str:
    """One long text with some words of its own: with few of them nearly the same as others, with many not."""
    words = list(WORDS)
    for place in changed:
        words[place % len(words)] = f"own{place}"
    return " ".join(words)


texts = st.lists(st.frozensets(st.integers(0, 120), max_size=5).map(text), max_size=14, unique=True)


def alike(one: str, other: str) -> bool:
    """Pair by pair, without an index: they agree in a whole band and in seven of ten slots."""
    agreeing = compute_signature(one) == compute_signature(other)
    return bool(agreeing.reshape(BANDS, -1).all(axis=1).any() and np.count_nonzero(agreeing) >= THRESHOLD * SLOTS)


def seat(known: list[tuple[str, SplitInterval]], newcomers: list[str]) -> list[tuple[str, SplitInterval]]:
    seating = SplitAssigner()
    for each, where in known:
        seating.add(digest_normalized(each), compute_signature(each).tobytes(), where)
    for each in newcomers:
        seating.add(digest_normalized(each), compute_signature(each).tobytes())
    return [*known, *zip(newcomers, filter(None, seating.decide()), strict=True)]


def sides(seated: list[tuple[str, SplitInterval]], shares: tuple[float, float]) -> dict[str, str | None]:
    return {each: where.side(validation=shares[0], test=shares[1]) for each, where in seated}


@settings(max_examples=60, deadline=None)
@given(texts)
@example([text([]), text([3]), text([3, 30]), text([30]), text([30, 17]), text([17])])
def test_what_is_alike_is_never_in_two_splits(corpus: list[str]) -> None:
    seated = seat([], corpus)
    pairs = [(one, other) for one, other in combinations(corpus, 2) if alike(one, other)]
    for shares in SHARES:
        found = sides(seated, shares)
        for one, other in pairs:
            assert len({found[one], found[other]} - {None}) <= 1


@settings(max_examples=60, deadline=None)
@given(texts, st.integers(0, 14), texts)
def test_nobody_moves_whatever_comes_and_whatever_goes(corpus: list[str], first: int, other: list[str]) -> None:
    """A corpus that grows in steps ends as one that came at once; what came later is nothing to what was there."""
    grown = seat([], corpus[:first])
    before = dict(grown)
    grown = seat(grown, corpus[first:])
    assert grown == seat([], corpus)
    assert before.items() <= dict(grown).items()
    elsewhere = dict(seat(grown[:first], [each for each in other if each not in corpus]))
    assert before.items() <= elsewhere.items()


def test_stretches_meet_where_texts_are_alike() -> None:
    """A bridge between two that lie apart is a stretch; one that is like the bridge alone is a point in it."""
    left, bridge, right = text([1, 14]), text([14, 27]), text([27, 39])
    assert (alike(left, bridge), alike(bridge, right), alike(left, right)) == (True, True, False)
    seated = dict(seat([], [left, right, bridge]))
    ends = sorted((splits.split_position(digest_normalized(left)), splits.split_position(digest_normalized(right))))
    assert [seated[bridge].low, seated[bridge].high] == ends
    assert seated[left].low == seated[left].high
    assert seated[bridge].side(validation=0.0, test=sum(ends) / 2) is None
    assert seated[bridge].side(validation=0.0, test=ends[0] / 2) == splits.TRAIN


def test_writings_of_one_problem_sit_together() -> None:
    """Signatures are of words: one long word and many short ones share none, and are the same letters."""
    assert seat([], ["a bc def g", "abcdefg", "ABC defg."])[0][1] == seat([], ["abcdefg"])[0][1]
    assert len({where for _, where in seat([], ["a bc def g", "abcdefg", "ABC defg."])}) == 1


def test_a_crowd_is_seated_in_linear_time() -> None:
    """Were each compared with each, these would be eight million pairs."""
    seated = seat([], [text([]) + f" own {number % 7}" for number in range(4000)])
    assert len({where for _, where in seated}) <= 7
