"""Rating patterns: counting, merging, and refusing impossible input."""

import numpy as np
import pytest

from stats import rating_patterns
from stats.rating_patterns import RatingPatterns


def test_of_rows_takes_problems_by_any_number() -> None:
    made = rating_patterns.patterns_from_rows([(907, (1, 0, 2), 4), (12, (0, 0, 2), 1), (907, (0, 1, 0), 3)])
    assert (len(made.copies), made.n_units, made.n_pairable) == (2, 8, 5)
    assert made.problems.tolist() == [1, 0, 1]


def test_compress_joins_equal_patterns_of_one_problem_only() -> None:
    made = rating_patterns.patterns_from_rows(
        [(1, (1, 0, 1), 2), (2, (1, 0, 1), 1), (1, (1, 0, 1), 3), (1, (0, 2, 0), 1)]
    )
    joined = rating_patterns.merge_equal_patterns(made)
    rows = {
        (int(problem), *map(int, counts)): int(units)
        for problem, counts, units in zip(joined.problems, joined.counts, joined.units, strict=True)
    }
    assert rows == {(0, 1, 0, 1): 5, (0, 0, 2, 0): 1, (1, 1, 0, 1): 1}


@pytest.mark.parametrize("largest", [2, 3000, 2**21])
def test_compress_counts_sorts_or_compares_with_the_same_result(largest: int) -> None:
    """Small keys are counted and large ones sorted; if a key does not fit into 64 bits, rows are compared."""
    made = rating_patterns.patterns_from_rows([(n % 3, (n % 2, largest, n % 2), 1) for n in range(60)])
    joined = rating_patterns.merge_equal_patterns(made)
    assert (len(joined.units), joined.n_units, joined.n_pairable) == (6, made.n_units, made.n_pairable)


def test_a_million_ratings_make_few_patterns() -> None:
    random = np.random.default_rng(1)
    made = rating_patterns.count_patterns(units=np.arange(100_000) // 2, labels=random.integers(0, 3, 100_000))
    assert (len(made.units), made.n_units) == (6, 50_000)  # every unit its own problem, of six kinds
    one = rating_patterns.count_patterns(
        units=np.arange(100_000) // 2,
        labels=random.integers(0, 3, 100_000),
        problem_of_unit=np.zeros(50_000, dtype=np.int64),
    )
    assert len(rating_patterns.merge_equal_patterns(one).units) == 6


@pytest.mark.parametrize(
    ("counts", "units", "problems"),
    [([[1, -1, 0]], [1], [0]), ([[1, 1, 0]], [-1], [0]), ([[1, 1, 0]], [1], [4]), ([[1, 1]], [1], [0])],
)
def test_invalid_patterns_are_rejected(counts: list[list[int]], units: list[int], problems: list[int]) -> None:
    with pytest.raises(ValueError, match=r"pattern|counts|problems"):
        RatingPatterns((-1.0, 0.0, 1.0), np.array(counts), np.array(units), np.array(problems), np.ones(2, int))


def test_of_ratings_refuses_a_label_off_the_scale() -> None:
    with pytest.raises(ValueError, match="label"):
        rating_patterns.count_patterns(units=np.array([0]), labels=np.array([3]))
