"""Estimate statistics from per-problem sums: value, intervals, counts, and reasons for missing numbers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from stats import intervals, rating_patterns
from stats.arrays import Bools, Floats, Ints, divide, unique_rows
from stats.estimates import Estimate, Reason, UnitCounts, defined_estimate, undefined_estimate
from stats.rating_patterns import PairSums, RatingPatterns


@dataclass(frozen=True)
class ClusterSample:
    """Sums per kind of problem (G, S), the number of problems of each kind, and unit counts.

    `rest` is the sum over problems with nothing to compare, which are never left out or drawn. `nothing` is the reason
    given when there are no other problems.
    """

    matrix: Floats
    copies: Ints
    rest: Floats
    counts: UnitCounts
    nothing: Reason


@dataclass(frozen=True)
class Statistic:
    """A function of sums, the lower end of its range (-1 or 0), and the reason when it is undefined."""

    function: Callable[[Floats], Floats]
    floor: float
    missing: Reason


def share_statistic(part: int, whole: int, missing: Reason = Reason.NO_CASES) -> Statistic:
    """Return the statistic that divides one column of the sums by another."""
    return Statistic(lambda sums: divide(sums[..., part], sums[..., whole]), 0.0, missing)


def estimate(
    *, statistic: Statistic, sample: ClusterSample, level: float = 0.95, with_bootstrap: bool = True
) -> Estimate:
    (result,) = estimate_all(
        statistics={"": statistic}, sample=sample, level=level, with_bootstrap=with_bootstrap
    ).values()
    return result


def estimate_all(
    *, statistics: Mapping[str, Statistic], sample: ClusterSample, level: float = 0.95, with_bootstrap: bool = True
) -> dict[str, Estimate]:
    """Estimate several statistics of one sample.

    All statistics share the resamples. A bootstrap costs a hundred times the default interval, so it is optional.
    """
    if not len(sample.copies):
        return {name: undefined_estimate(sample.nothing, sample.counts) for name in statistics}
    drawn: Floats | Reason = Reason.NOT_DRAWN
    if with_bootstrap:
        drawn = intervals.draw_resamples(sums=sample.matrix, copies=sample.copies, rest=sample.rest)
    return {name: _estimate(statistic, sample, drawn, level) for name, statistic in statistics.items()}


def _estimate(statistic: Statistic, sample: ClusterSample, drawn: Floats | Reason, level: float) -> Estimate:
    total = sample.rest + sample.copies @ sample.matrix
    value = float(statistic.function(total))
    if not np.isfinite(value):
        return undefined_estimate(statistic.missing, sample.counts)
    default = intervals.jackknife_interval(
        value=value,
        without_one=statistic.function(total - sample.matrix),
        copies=sample.copies,
        floor=statistic.floor,
        level=level,
    )
    if isinstance(drawn, Reason):
        return defined_estimate(value, sample.counts, default, drawn)
    resampled = intervals.bootstrap_interval(statistic=statistic.function, drawn=drawn, level=level)
    return defined_estimate(value, sample.counts, default, resampled)


def sample_from_sums(
    matrix: Floats,
    *,
    is_comparable: Bools,
    units: int,
    pairable: int | None = None,
    copies: Ints | None = None,
    nothing: Reason = Reason.NO_CASES,
) -> ClusterSample:
    """Return a sample from sums per problem, storing problems with equal sums once.

    By default all units are pairable, and each row is one problem.
    """
    if copies is None:
        copies = np.ones(len(matrix), dtype=np.int64)
    kinds, kind = unique_rows(matrix[is_comparable])
    of_kind = np.bincount(kind, weights=copies[is_comparable], minlength=len(kinds)).astype(np.int64)
    rest = copies[~is_comparable] @ matrix[~is_comparable]
    counts = UnitCounts(units, units if pairable is None else pairable, problems=int(of_kind.sum()))
    return ClusterSample(kinds, of_kind, rest, counts, nothing)


def sample_from_patterns(patterns: RatingPatterns) -> tuple[PairSums, ClusterSample]:
    """Return the pair sums of step ratings, and the sample built from these sums."""
    pairs = rating_patterns.sum_pairs(patterns)
    return pairs, sample_from_sums(
        pairs.matrix,
        copies=patterns.copies,
        is_comparable=pairs.all_pairs > 0,
        units=patterns.n_units,
        pairable=patterns.n_pairable,
        nothing=Reason.NO_PAIRS,
    )


def estimate_share_by_problem(counts: Mapping[int, tuple[int, int]]) -> Estimate:
    """Estimate a share from (hits, cases) by problem."""
    rows = np.array(list(counts.values()), dtype=np.int64).reshape(-1, 2)
    return estimate_share(rows[:, 0], rows[:, 1])


def estimate_share(hits: Ints, cases: Ints) -> Estimate:
    """Estimate the share of hits among cases, both counted per problem."""
    # One integer per problem identifies equal problems, so a million of them cost one sort.
    base = int(cases.max(initial=0)) + 1
    keys, copies = np.unique(cases * base + hits, return_counts=True)
    matrix = np.column_stack([keys % base, keys // base]).astype(np.float64)
    sample = sample_from_sums(
        matrix, copies=copies.astype(np.int64), is_comparable=matrix[:, 1] > 0, units=int(cases.sum())
    )
    return estimate(statistic=share_statistic(0, 1), sample=sample, with_bootstrap=False)
