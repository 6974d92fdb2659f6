"""From a statistic and per-problem sums to an estimate: the value, its intervals, its counts, the reasons."""

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
    """Sums per kind of problem (G, S), how many problems are of each kind, and what was counted.

    Problems without anything to compare are of no kind: their sums lie in `rest`, in every resample alike. `nothing` is
    what to say where there is no other problem.
    """

    matrix: Floats
    copies: Ints
    rest: Floats
    counts: UnitCounts
    nothing: Reason = Reason.NO_PAIRS


@dataclass(frozen=True)
class Statistic:
    """A function of sums, its lower end (-1 a coefficient, 0 a share), and why it has no value when it has none."""

    of: SumsFunction
    floor: float
    missing: Reason


def estimate(*, statistic: Statistic, sample: ClusterSample, level: float = 0.95, seed: int = 0) -> Estimate:
    return estimates(statistics={"": statistic}, sample=sample, level=level, seed=seed)[""]


def estimates(
    *,
    statistics: Mapping[str, Statistic],
    sample: ClusterSample,
    level: float = 0.95,
    seed: int = 0,
    with_bootstrap: bool = True,
) -> dict[str, Estimate]:
    """Several statistics of one sample, by name; the resamples are drawn once for all, or not at all: a bootstrap costs
    a hundred times the default interval."""
    if not len(sample.copies):
        return {name: undefined_estimate(sample.nothing, sample.counts) for name in statistics}
    drawn: Floats | Reason = Reason.NOT_DRAWN
    if with_bootstrap:
        drawn = bootstrap.draw_resamples(sums=sample.matrix, copies=sample.copies, rest=sample.rest, seed=seed)
    return {name: _estimate(statistic, sample, drawn, level) for name, statistic in statistics.items()}


def _estimate(statistic: Statistic, sample: ClusterSample, drawn: Floats | Reason, level: float) -> Estimate:
    total = sample.rest + sample.copies @ sample.matrix
    value = float(statistic.of(total))
    if not np.isfinite(value):
        return undefined_estimate(statistic.missing, sample.counts)
    default = intervals.jackknife_interval(
        value=value,
        without_one=statistic.of(total - sample.matrix),
        copies=sample.copies,
        floor=statistic.floor,
        level=level,
    )
    if isinstance(drawn, Reason):
        return _with_intervals(value, sample.counts, default, drawn)
    beside = bootstrap.bootstrap_interval(statistic=statistic.of, drawn=drawn, level=level)
    return _with_intervals(value, sample.counts, default, beside)


def sample_from_sums(
    matrix: Floats,
    *,
    copies: Ints,
    is_comparable: Bools,
    units: int,
    pairable: int,
    nothing: Reason = Reason.NO_PAIRS,
) -> ClusterSample:
    """A sample from sums per problem; problems with equal sums are kept once."""
    kinds, kind = unique_rows(matrix[is_comparable])
    of_kind = np.bincount(kind, weights=copies[is_comparable], minlength=len(kinds)).astype(np.int64)
    rest = copies[~is_comparable] @ matrix[~is_comparable]
    counts = UnitCounts(units=units, pairable=pairable, problems=int(of_kind.sum()))
    return ClusterSample(kinds, of_kind, rest, counts, nothing)


def sample_from_patterns(patterns: RatingPatterns) -> tuple[rating_patterns.PairSums, ClusterSample]:
    """The sums of step ratings; problems without a unit rated twice stay in, but are never left out or drawn."""
    pairs = rating_patterns.sum_pairs(patterns)
    return pairs, sample_from_sums(
        pairs.matrix,
        copies=patterns.copies,
        is_comparable=pairs.all_pairs > 0,
        units=patterns.n_units,
        pairable=patterns.n_pairable,
    )


def _with_intervals(
    value: float, counts: UnitCounts, default: Interval | Reason, beside: Interval | Reason
) -> Estimate:
    return Estimate(
        value=value,
        counts=counts,
        interval=default if isinstance(default, Interval) else None,
        interval_reason=default if isinstance(default, Reason) else None,
        bootstrap=beside if isinstance(beside, Interval) else None,
        bootstrap_reason=beside if isinstance(beside, Reason) else None,
    )


# A share of cases of which something holds, say that they went wrong, with its interval by problem.


def estimate_share_by_problem(counts: Mapping[int, tuple[int, int]], *, level: float = 0.95) -> Estimate:
    """`counts` are (those, cases) by problem."""
    rows = np.array(list(counts.values()), dtype=np.int64).reshape(-1, 2)
    return estimate_share(rows[:, 0], rows[:, 1], level=level)


def estimate_share(those: Ints, cases: Ints, *, level: float = 0.95) -> Estimate:
    """A place a problem. Problems that are alike are told once: a million of them cost one sort of numbers."""
    base = int(cases.max(initial=0)) + 1
    keys, copies = np.unique(cases * base + those, return_counts=True)
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
    found = estimates(statistics={"": _SHARE_STATISTIC}, sample=sample, level=level, with_bootstrap=False)
    return found[""]


def _share_of_sums(sums: Floats) -> Floats:
    return divide(sums[..., 0], sums[..., 1])


_SHARE_STATISTIC = Statistic(_share_of_sums, 0.0, Reason.NO_CASES)
