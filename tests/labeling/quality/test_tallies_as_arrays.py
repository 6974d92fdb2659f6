"""Tally arrays by dimension against counts of their rows."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from labeling.quality import tallies
from labeling.quality.tallies import COUNTERS, TallyArrays
from stats.rating_patterns import RatingPatterns

WORDS = {"domain": ["", "algebra", "geometry"], **dict.fromkeys(("step_kind", "first_kind", "second_kind"), "ra")}
TRACES = 60
Row = dict[str, int]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Traces with one or two kinds of steps; some with one submission, some problems with equal ratings."""
    draw = np.random.default_rng(7).integers
    found = []
    for trace in range(TRACES):
        n_steps, is_alone = int(draw(1, 5)), trace % 7 == 0
        seen = [int(draw(0, n_steps + 1)), -1 if is_alone else int(draw(0, n_steps + 1))]
        kinds = [-1 if end in (n_steps, -1) else int(draw(0, 2)) for end in seen]
        whole = {
            "trace": 1000 + trace,
            "problem": 10**12 + trace % 11,
            "domain": trace % 11 % 3,
            "generation": int(draw(0, 3)),
            "guideline": int(draw(-1, 3)),
            "first_rater": 5 + int(draw(0, 3)),
            "second_rater": -1 if is_alone else 8 + int(draw(0, 3)),
            "n_steps": n_steps,
            **dict(zip(("first_end", "second_end"), seen, strict=True)),
            **dict(zip(("first_kind", "second_kind"), kinds, strict=True)),
            "is_first_censored": 0,
            "is_second_censored": 0,
        }
        for kind in (0, 1)[: 1 + trace % 2]:
            for is_alternative in (0, 1)[: 1 + trace % 3 // 2]:
                counts = {name: int(draw(0, 2)) for name in COUNTERS}
                found.append({**whole, "step_kind": kind, "is_alternative": is_alternative, **counts})
    return found


@pytest.fixture(scope="module")
def read(rows: list[Row]) -> TallyArrays:
    return TallyArrays({name: np.array([row[name] for row in rows]) for name in rows[0]}, WORDS)


def pair(row: Row) -> Any:
    found = sorted([row["first_rater"], row["second_rater"]])
    return tuple(found) if found[0] >= 0 else None


KEYS: dict[str, Callable[[Row], Any]] = {
    "domain": lambda row: WORDS["domain"][row["domain"]],
    "step_kind": lambda row: WORDS["step_kind"][row["step_kind"]],
    "generation": lambda row: row["generation"],
    "guideline": lambda row: row["guideline"],
    "pair": pair,
}


def counted(found: RatingPatterns) -> Counter[tuple[int, ...]]:
    """Return the number of units with each pattern, over all problems."""
    together: Counter[tuple[int, ...]] = Counter()
    for counts, units in zip(found.counts.tolist(), found.all_units.tolist(), strict=True):
        together[tuple(counts)] += units
    return together


def by_hand(rows: list[Row], *, is_alternative: int = 0) -> Counter[tuple[int, ...]]:
    sums = {name: sum(row[name] for row in rows if row["is_alternative"] == is_alternative) for name in COUNTERS}
    shapes = map(tuple, tallies._COUNTER_PATTERNS.tolist())
    return Counter({shape: n for shape, n in zip(shapes, sums.values(), strict=True) if n})


@pytest.mark.parametrize("by", KEYS)
def test_patterns_by_key_equal_those_of_its_rows(by: str, rows: list[Row], read: TallyArrays) -> None:
    key = KEYS[by]
    found = read.steps(by)
    assert set(found) == {key(row) for row in rows} - {None}
    for name, patterns in found.items():
        own = [row for row in rows if key(row) == name]
        assert counted(patterns) == by_hand(own)
        assert patterns.copies.sum() == len({row["problem"] for row in own})
    assert counted(read.all_steps()) == by_hand(rows)


@pytest.mark.parametrize("by", ["domain", "generation", "guideline", "pair"])
def test_pairs_have_each_trace_once_under_its_key(by: str, rows: list[Row], read: TallyArrays) -> None:
    pairs = read.pairs
    assert len(pairs) == TRACES
    found = {key: set(pairs.columns["trace"][places].tolist()) for key, places in pairs.by(by).items()}
    expected: dict[Any, set[int]] = {}
    for row in rows:
        expected.setdefault(KEYS[by](row), set()).add(row["trace"])
    expected.pop(None, None)
    assert found == expected


def test_at_kind_selects_traces_with_an_error_of_that_kind(rows: list[Row], read: TallyArrays) -> None:
    for place, kind in enumerate("ra"):
        expected = {row["trace"] for row in rows if place in (row["first_kind"], row["second_kind"])}
        assert set(read.pairs.columns["trace"][read.pairs.at_kind(kind)].tolist()) == expected


def test_only_equals_loading_these_traces(rows: list[Row], read: TallyArrays) -> None:
    chosen = [1003, 1007, 1010, 5000]
    own = [row for row in rows if row["trace"] in chosen]
    some = read.only(chosen)
    assert counted(some.all_steps()) == by_hand(own)
    assert counted(some.all_alternatives()) == by_hand(own, is_alternative=1)
    assert some.pairs.reports().n_traces == 3
    assert counted(read.only([]).all_steps()) == Counter()
    assert read.only([]).steps("pair") == {}
