"""Per-problem sums from which every step statistic and its interval follow.

For K values a problem is K(K+1) + K + 2 numbers, 17 for a project's three values (for pairs of raters the last two say
nothing new, then 15): the coincidences `Σ_u n_uc (n_uk - [c=k]) / (m_u - 1)`, the unit means
`Σ_u n_uc (n_uk - [c=k]) / (m_u (m_u - 1))` (both symmetric, so each unordered pair is kept once), the shares
`Σ_u n_uk / m_u`, and the agreeing and all pairs. They add up over problems: leaving one out is a subtraction.
"""

import functools
from dataclasses import dataclass

import numpy as np

from labeling.agreement.arrays import Floats, Ints, sum_by
from labeling.agreement.patterns import Patterns


@dataclass(frozen=True)
class PairSums:
    """`matrix` is (..., S): one row per kind of problem, per resample, or none at all for a total."""

    values: tuple[float, ...]
    matrix: Floats
    copies: Ints | None = None

    @property
    def k(self) -> int:
        return len(self.values)

    @property
    def coincidences(self) -> Floats:
        """(..., K, K): how often value c met value k within a unit, each unit weighing its number of ratings."""
        return _square(self.matrix[..., : self._half], self.k)

    @property
    def unit_pairs(self) -> Floats:
        """(..., K, K): the same with every pairable unit weighing one."""
        return _square(self.matrix[..., self._half : 2 * self._half], self.k)

    @property
    def shares(self) -> Floats:
        """(..., K): the share of each value within a unit, added over the rated units."""
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

    def total(self) -> "PairSums":
        """The sums of all problems together."""
        return self.put(self.matrix.sum(axis=0) if self.copies is None else self.copies @ self.matrix)

    def put(self, matrix: Floats) -> "PairSums":
        """The same scale over other rows."""
        return PairSums(self.values, matrix)


def of_patterns(patterns: Patterns) -> PairSums:
    """One row of sums per problem."""
    rows = _row_sums(patterns) * patterns.units[:, None]
    summed = sum_by(groups=patterns.problems, rows=rows, n_groups=len(patterns.copies))
    return PairSums(patterns.values, summed, patterns.copies)


def _row_sums(patterns: Patterns) -> Floats:
    counts = patterns.counts.astype(np.float64)
    ratings = counts.sum(axis=1)
    first, second = _above(len(patterns.values))
    pairs = counts[:, first] * (counts[:, second] - (first == second))
    others = np.where(ratings >= 2, ratings - 1, np.inf)[:, None]  # a lone rating meets nothing
    rated = np.where(ratings >= 1, ratings, np.inf)[:, None]
    agreeing = pairs[:, first == second].sum(axis=1, keepdims=True)
    everything = (ratings * (ratings - 1))[:, None]
    return np.hstack([pairs / others, pairs / others / rated, counts / rated, agreeing, everything])


@functools.cache
def _above(k: int) -> tuple[Ints, Ints]:
    """Each unordered pair of values, equal ones too. Asked for thousands of times a refresh."""
    first, second = np.triu_indices(k)
    return first, second


def _square(half: Floats, k: int) -> Floats:
    first, second = _above(k)
    full = np.empty((*half.shape[:-1], k, k))
    full[..., first, second] = half
    full[..., second, first] = half
    return full
