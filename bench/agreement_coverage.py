"""Measure the coverage of 95 % intervals. Two raters stop at the first error they see, on problems that differ.

Every replication draws new problems; the true value is estimated on a very large number of them. Three traces per
problem allow few different shares of first errors, so intervals of these shares cover more than 95 %.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stats import agreement, rating_patterns
from stats import intervals as stats_intervals
from stats.arrays import Floats, Ints
from stats.estimates import Interval
from stats.rating_patterns import PairSums

_STEPS = 12


class _Statistic(NamedTuple):
    of: Callable[[PairSums], Floats]
    floor: float
    units: str = "steps"
    at_most: float = 0.97


_STATISTICS = {
    "alpha_nominal": _Statistic(agreement.alpha_nominal, -1.0),
    "alpha_ordinal": _Statistic(agreement.alpha_ordinal, -1.0),
    "gwet_ac1": _Statistic(agreement.gwet_ac1, -1.0),
    "pairwise_agreement": _Statistic(agreement.pairwise_agreement, 0.0),
    "first_error_exact": _Statistic(agreement.pairwise_agreement, 0.0, "same place", at_most=1.0),
    "has_error_kappa": _Statistic(agreement.fleiss_kappa, -1.0, "has error", at_most=1.0),
}


@dataclass(frozen=True)
class Coverage:
    statistic: str
    problems: int
    replications: int
    covered: float
    without_interval: int
    at_most: float


def measure(*, sizes: tuple[int, ...] = (8, 15, 30, 60), replications: int = 1000, seed: int = 1) -> list[Coverage]:
    random = np.random.default_rng(seed)
    everything = {units: pairs.put(pairs.matrix.sum(axis=0)) for units, pairs in _problems(60_000, random).items()}
    truth = {name: float(each.of(everything[each.units])) for name, each in _STATISTICS.items()}
    return [
        _covered(name, size, replications, truth[name], _problems(size * replications, random)[each.units])
        for size in sizes
        for name, each in _STATISTICS.items()
    ]


def random_raters(*, seeds: int = 200, problems: int = 15, seed: int = 2) -> float:
    """Return the share of seeds in which the interval of alpha covers 0 for two random raters."""
    random = np.random.default_rng(seed)
    units = problems * seeds * _STEPS
    labels = random.integers(0, 3, 2 * units)
    thrown = _sums(np.tile(np.arange(units), 2), labels, np.arange(units) // _STEPS)
    return _covered("alpha_nominal", problems, seeds, 0.0, thrown).covered


def _covered(name: str, size: int, replications: int, truth: float, pairs: PairSums) -> Coverage:
    of, floor, _units, at_most = _STATISTICS[name]
    matrix = pairs.matrix.reshape(replications, size, -1)
    totals = matrix.sum(axis=1, keepdims=True)
    values, without_one = of(pairs.put(totals[:, 0])), of(pairs.put(totals - matrix))
    copies = np.ones(size, dtype=np.int64)
    found = [
        stats_intervals.jackknife_interval(value=value, without_one=row, copies=copies, floor=floor)
        for value, row in zip(values.tolist(), without_one, strict=True)
    ]
    intervals = [interval for interval in found if isinstance(interval, Interval)]
    covered = sum(interval.low <= truth <= interval.high for interval in intervals) / max(len(intervals), 1)
    return Coverage(name, size, replications, covered, len(found) - len(intervals), at_most)


def _problems(n: int, random: np.random.Generator) -> dict[str, PairSums]:
    """Sum n problems with three traces each. Error rates and the raters' accuracy differ between problems."""
    traces = n * 3
    hazard = np.repeat(random.beta(1.2, 8, n), 3)[:, None]
    care = np.repeat(random.beta(12, 2, n), 3)[:, None]
    right = np.where(random.random((traces, _STEPS)) < 0.08, 1, 2)
    truth = np.where(random.random((traces, _STEPS)) < hazard, 0, right)
    length = random.integers(4, _STEPS + 1, traces)[:, None]
    units, labels = zip(*(_rated(truth, care, length, random) for _ in range(2)), strict=True)
    ends = [_first_error_positions(*each, length.ravel()) for each in zip(units, labels, strict=True)]
    return {
        "steps": _sums(np.concatenate(units), np.concatenate(labels), np.arange(traces * _STEPS) // (3 * _STEPS)),
        "same place": _trace_units([np.zeros(traces, dtype=np.int64), (ends[0] != ends[1]).astype(np.int64)]),
        "has error": _trace_units([(each < length.ravel()).astype(np.int64) for each in ends]),
    }


def _first_error_positions(units: Ints, labels: Ints, length: Ints) -> Ints:
    """Return the position of each trace's first reported error, or its length without one."""
    ends = length.copy()
    negative = units[labels == 0]
    ends[negative // _STEPS] = negative % _STEPS
    return ends


def _trace_units(ratings: list[Ints]) -> PairSums:
    """Count the two raters' binary ratings of traces."""
    n = len(ratings[0])
    return _sums(np.tile(np.arange(n), 2), np.concatenate(ratings), np.arange(n) // 3)


def _rated(truth: Ints, care: Floats, length: Ints, random: np.random.Generator) -> tuple[Ints, Ints]:
    ratings = np.where(
        random.random(truth.shape) < care, truth, random.choice(3, size=truth.shape, p=[0.1, 0.15, 0.75])
    )
    errors = np.cumsum(ratings == 0, axis=1)
    is_rated = (errors - (ratings == 0) == 0) & (np.arange(truth.shape[1]) < length)  # up to the first error
    return np.flatnonzero(is_rated.ravel()), ratings[is_rated]


def _sums(units: Ints, labels: Ints, problem_of_unit: Ints) -> PairSums:
    last = int(problem_of_unit[-1])
    counted = rating_patterns.count_patterns(units=units, labels=labels, problem_of_unit=problem_of_unit)
    pairs = rating_patterns.sum_pairs(counted)
    missing = last + 1 - len(pairs.matrix)
    return pairs.put(np.vstack([pairs.matrix, np.zeros((missing, pairs.matrix.shape[1]))]))
