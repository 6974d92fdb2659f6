"""Estimate statistics from per-problem sums: value, intervals, counts, and reasons for missing numbers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from stats import bootstrap, intervals, rating_patterns
from stats.arrays import Bools, Floats, Ints, divide, unique_rows
from stats.estimates import Estimate, Interval, Reason, UnitCounts, undefined_estimate
from stats.rating_patterns import RatingPatterns

SumsFunction = Callable[[Floats], Floats]


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
    nothing: Reason = Reason.NO_PAIRS


@dataclass(frozen=True)
class Statistic:
    """A function of sums, the lower end of its range (-1 or 0), and the reason when it is undefined."""

    function: SumsFunction
    floor: float
    missing: Reason


def estimate(*, statistic: Statistic, sample: ClusterSample, level: float = 0.95, seed: int = 0) -> Estimate:
    return estimate_all(statistics={"": statistic}, sample=sample, level=level, seed=seed)[""]


def estimate_all(
    *,
    statistics: Mapping[str, Statistic],
    sample: ClusterSample,
    level: float = 0.95,
    seed: int = 0,
    with_bootstrap: bool = True,
) -> dict[str, Estimate]:
    """Estimate several statistics of one sample.

    All statistics share the resamples. A bootstrap costs a hundred times the default interval, so it is optional.
    """
    if not len(sample.copies):
        return {name: undefined_estimate(sample.nothing, sample.counts) for name in statistics}
    drawn: Floats | Reason = Reason.NOT_DRAWN
    if with_bootstrap:
        drawn = bootstrap.draw_resamples(sums=sample.matrix, copies=sample.copies, rest=sample.rest, seed=seed)
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
        return _with_intervals(value, sample.counts, default, drawn)
    resampled = bootstrap.bootstrap_interval(statistic=statistic.function, drawn=drawn, level=level)
    return _with_intervals(value, sample.counts, default, resampled)


def sample_from_sums(
    matrix: Floats,
    *,
    copies: Ints,
    is_comparable: Bools,
    units: int,
    pairable: int,
    nothing: Reason = Reason.NO_PAIRS,
) -> ClusterSample:
    """Return a sample from sums per problem, storing problems with equal sums once."""
    kinds, kind = unique_rows(matrix[is_comparable])
    of_kind = np.bincount(kind, weights=copies[is_comparable], minlength=len(kinds)).astype(np.int64)
    rest = copies[~is_comparable] @ matrix[~is_comparable]
    counts = UnitCounts(units=units, pairable=pairable, problems=int(of_kind.sum()))
    return ClusterSample(kinds, of_kind, rest, counts, nothing)


def sample_from_patterns(patterns: RatingPatterns) -> tuple[rating_patterns.PairSums, ClusterSample]:
    """Return the pair sums of step ratings, and the sample made of them."""
    pairs = rating_patterns.sum_pairs(patterns)
    return pairs, sample_from_sums(
        pairs.matrix,
        copies=patterns.copies,
        is_comparable=pairs.all_pairs > 0,
        units=patterns.n_units,
        pairable=patterns.n_pairable,
    )


def _with_intervals(
    value: float, counts: UnitCounts, default: Interval | Reason, resampled: Interval | Reason
) -> Estimate:
    return Estimate(
        value=value,
        counts=counts,
        interval=default if isinstance(default, Interval) else None,
        interval_reason=default if isinstance(default, Reason) else None,
        bootstrap=resampled if isinstance(resampled, Interval) else None,
        bootstrap_reason=resampled if isinstance(resampled, Reason) else None,
    )


def estimate_share_by_problem(counts: Mapping[int, tuple[int, int]], *, level: float = 0.95) -> Estimate:
    """Estimate a share from (hits, cases) by problem."""
    rows = np.array(list(counts.values()), dtype=np.int64).reshape(-1, 2)
    return estimate_share(rows[:, 0], rows[:, 1], level=level)


def estimate_share(hits: Ints, cases: Ints, *, level: float = 0.95) -> Estimate:
    """Estimate the share of hits among cases, both counted per problem."""
    # One integer per problem identifies equal problems, so a million of them cost one sort.
    base = int(cases.max(initial=0)) + 1
    keys, copies = np.unique(cases * base + hits, return_counts=True)
    matrix = np.column_stack([keys % base, keys // base]).astype(np.float64)
    n = int(cases.sum())
    sample = sample_from_sums(
        matrix,
        copies=copies.astype(np.int64),
        is_comparable=matrix[:, 1] > 0,
        units=n,
        pairable=n,
        nothing=Reason.NO_CASES,
    )
    return estimate_all(statistics={"": _SHARE_STATISTIC}, sample=sample, level=level, with_bootstrap=False)[""]


def _share_of_sums(sums: Floats) -> Floats:
    return divide(sums[..., 0], sums[..., 1])


_SHARE_STATISTIC = Statistic(_share_of_sums, 0.0, Reason.NO_CASES)
