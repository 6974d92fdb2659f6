"""Pattern counts, the input of every step statistic: how many units of a problem show which pattern of ratings.

A unit (such as a step's option) rated +1 twice and -1 once has the pattern (1, 0, 2) over the values (-1, 0, +1).
Every step statistic is a function of {(n-, n0, n+): units}, stored per problem because intervals cluster by problem. A
million ratings make about fifty patterns; one row per unit is the same shape, only longer. Equal problems can be stored
once with a number of copies: if every unit is its own problem, that makes fifty rows again.
"""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from stats.arrays import Floats, Ints, sum_by

PROJECT_SCALE = (-1.0, 0.0, 1.0)  # all three values, even if neutral was never used
_MAX_DENSE_KEYS = 1 << 22  # up to this many possible keys, counting is faster than sorting


@dataclass(frozen=True)
class RatingPatterns:
    """In row r, `units[r]` units of problem `problems[r]` have the counts `counts[r]` over `values`.

    `copies` is the number of equal problems that each problem represents.
    """

    values: tuple[float, ...]
    counts: Ints
    units: Ints
    problems: Ints
    copies: Ints

    def __post_init__(self) -> None:
        rows = len(self.units)
        if self.counts.shape != (rows, len(self.values)) or self.problems.shape != (rows,):
            raise ValueError(f"{rows} patterns over {len(self.values)} values do not fit {self.counts.shape}")
        if rows and (self.counts.min() < 0 or self.units.min() < 0):
            raise ValueError("counts of ratings and units cannot be negative")
        if rows and not 0 <= self.problems.min() <= self.problems.max() < len(self.copies):
            raise ValueError(f"problems must be numbered from 0 to {len(self.copies) - 1}")

    @property
    def all_units(self) -> Ints:
        """Units per row, including those of the problem's copies."""
        return self.units * self.copies[self.problems]

    @property
    def n_units(self) -> int:
        """Units with at least one rating."""
        return int(self.all_units[self.counts.sum(axis=1) >= 1].sum())

    @property
    def n_pairable(self) -> int:
        """Units with at least two ratings."""
        return int(self.all_units[self.counts.sum(axis=1) >= 2].sum())


def count_patterns(
    *, units: Ints, labels: Ints, problem_of_unit: Ints | None = None, values: Sequence[float] = PROJECT_SCALE
) -> RatingPatterns:
    """Count ratings per unit. `labels` are indices of `values`; by default, each unit is its own problem."""
    n_units = int(units.max()) + 1 if len(units) else 0
    if len(labels) and not 0 <= labels.min() <= labels.max() < len(values):
        raise ValueError(f"a label must be an index of the {len(values)} values")
    counts = np.bincount(units * len(values) + labels, minlength=n_units * len(values)).reshape(n_units, len(values))
    if problem_of_unit is None:
        return _one_problem_per_unit(counts, values)
    n_problems = int(problem_of_unit.max()) + 1 if len(problem_of_unit) else 0
    ones = np.ones(n_units, dtype=np.int64)
    return RatingPatterns(tuple(values), counts, ones, problem_of_unit[:n_units], np.ones(n_problems, dtype=np.int64))


def patterns_from_rows(
    rows: Iterable[tuple[int, Sequence[int], int]], *, values: Sequence[float] = PROJECT_SCALE
) -> RatingPatterns:
    """Return patterns from (problem, counts, units) rows, such as a database returns."""
    rows = list(rows)
    numbers, problems = np.unique(np.array([row[0] for row in rows], dtype=np.int64), return_inverse=True)
    return RatingPatterns(
        values=tuple(values),
        counts=np.array([row[1] for row in rows], dtype=np.int64).reshape(len(rows), len(values)),
        units=np.array([row[2] for row in rows], dtype=np.int64),
        problems=problems.astype(np.int64),
        copies=np.ones(len(numbers), dtype=np.int64),
    )


def merge_equal_patterns(patterns: RatingPatterns) -> RatingPatterns:
    """Merge rows of the same problem and pattern."""
    if not len(patterns.units):
        return patterns
    keys = _keys(patterns.counts, patterns.problems, len(patterns.copies))
    first, units = _first_and_total(keys, patterns.units)
    return RatingPatterns(
        values=patterns.values,
        counts=patterns.counts[first],
        units=units,
        problems=patterns.problems[first],
        copies=patterns.copies,
    )


def _one_problem_per_unit(counts: Ints, values: Sequence[float]) -> RatingPatterns:
    """Make each unit its own problem, storing equal units once."""
    if not len(counts):
        return patterns_from_rows([], values=values)
    zeros = np.zeros(len(counts), dtype=np.int64)
    first, copies = _first_and_total(_keys(counts, zeros, 1), zeros + 1)
    ones = np.ones(len(first), dtype=np.int64)
    return RatingPatterns(tuple(values), counts[first], ones, np.arange(len(first)), copies)


def _keys(counts: Ints, problems: Ints, n_problems: int) -> Ints:
    """Return one number per row, equal for equal (problem, pattern)."""
    base = int(counts.max()) + 1
    if float(base) ** counts.shape[1] * n_problems >= 2**62:
        rows = np.column_stack([problems, counts])
        return np.unique(rows, axis=0, return_inverse=True)[1].astype(np.int64)
    keys = problems.astype(np.int64)
    for column in counts.T:
        keys = keys * base + column
    return keys


def _first_and_total(keys: Ints, units: Ints) -> tuple[Ints, Ints]:
    """Return for each distinct key a row that has it, and the units of all rows that have it."""
    if int(keys.max()) < _MAX_DENSE_KEYS:
        row_of_key = np.full(int(keys.max()) + 1, -1, dtype=np.int64)
        row_of_key[keys] = np.arange(len(keys))
        totals = np.bincount(keys, weights=units)
        present = np.flatnonzero(row_of_key >= 0)
        return row_of_key[present], totals[present].astype(np.int64)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return first, np.bincount(inverse, weights=units).astype(np.int64)


@dataclass(frozen=True)
class PairSums:
    """Sums over units that every step statistic is a function of.

    `matrix` is (..., S): one row per kind of problem or per resample, or a single vector for a total.
    """

    values: tuple[float, ...]
    matrix: Floats

    @property
    def k(self) -> int:
        return len(self.values)

    @property
    def coincidences(self) -> Floats:
        """(..., K, K): how often values c and k occur together in a unit, weighted by its number of ratings."""
        return _square(self.matrix[..., : self._half], self.k)

    @property
    def unit_pairs(self) -> Floats:
        """(..., K, K): the same with weight one for every pairable unit."""
        return _square(self.matrix[..., self._half : 2 * self._half], self.k)

    @property
    def shares(self) -> Floats:
        """(..., K): the share of each value within a unit, summed over the rated units."""
        return self.matrix[..., 2 * self._half : 2 * self._half + self.k]

    @property
    def agreeing_pairs(self) -> Floats:
        return self.matrix[..., -2]

    @property
    def all_pairs(self) -> Floats:
        return self.matrix[..., -1]

    @property
    def _half(self) -> int:
        return self.k * (self.k + 1) // 2

    def put(self, matrix: Floats) -> "PairSums":
        """Return sums on the same scale with other rows."""
        return PairSums(self.values, matrix)


def sum_pairs(patterns: RatingPatterns) -> PairSums:
    """Return one row of sums per problem."""
    rows = _row_sums(patterns) * patterns.units[:, None]
    summed = sum_by(groups=patterns.problems, rows=rows, n_groups=len(patterns.copies))
    return PairSums(patterns.values, summed)


def _row_sums(patterns: RatingPatterns) -> Floats:
    counts = patterns.counts.astype(np.float64)
    ratings = counts.sum(axis=1)
    first, second = _value_pairs(len(patterns.values))
    pairs = counts[:, first] * (counts[:, second] - (first == second))
    others = np.where(ratings >= 2, ratings - 1, np.inf)[:, None]  # a single rating forms no pair
    rated = np.where(ratings >= 1, ratings, np.inf)[:, None]
    agreeing = pairs[:, first == second].sum(axis=1, keepdims=True)
    all_pairs = (ratings * (ratings - 1))[:, None]
    return np.hstack([pairs / others, pairs / others / rated, counts / rated, agreeing, all_pairs])


@functools.cache
def _value_pairs(k: int) -> tuple[Ints, Ints]:
    """Return each unordered pair of values, including equal ones. Cached: called thousands of times per refresh."""
    first, second = np.triu_indices(k)
    return first, second


def _square(half: Floats, k: int) -> Floats:
    first, second = _value_pairs(k)
    full = np.empty((*half.shape[:-1], k, k))
    full[..., first, second] = half
    full[..., second, first] = half
    return full
