"""From a statistic and per-problem sums to an estimate: the value, its intervals, its counts, the reasons."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from labeling.agreement import bootstrap, jackknife, sums
from labeling.agreement.arrays import Bools, Floats, Ints, alike
from labeling.agreement.patterns import Patterns
from labeling.agreement.result import Counts, Estimate, Interval, Reason, undefined

Matrix = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Sample:
    """Sums per kind of problem (G, S), how many problems are of each kind, and what was counted.

    Problems without anything to compare are of no kind: their sums lie in `rest`, in every resample alike. `nothing` is
    what to say where there is no other problem.
    """

    matrix: Floats
    copies: Ints
    rest: Floats
    counts: Counts
    nothing: Reason = Reason.NO_PAIRS


@dataclass(frozen=True)
class Statistic:
    """A function of sums, its lower end (-1 a coefficient, 0 a share), and why it has no value when it has none."""

    of: Matrix
    floor: float
    missing: Reason


def estimate(*, statistic: Statistic, sample: Sample, level: float = 0.95, seed: int = 0) -> Estimate:
    return estimates(statistics={"": statistic}, sample=sample, level=level, seed=seed)[""]


def estimates(
    *,
    statistics: Mapping[str, Statistic],
    sample: Sample,
    level: float = 0.95,
    seed: int = 0,
    with_bootstrap: bool = True,
) -> dict[str, Estimate]:
    """Several statistics of one sample, by name; the resamples are drawn once for all, or not at all: a bootstrap costs
    a hundred times the default interval."""
    if not len(sample.copies):
        return {name: undefined(sample.nothing, sample.counts) for name in statistics}
    drawn: Floats | Reason = Reason.NOT_DRAWN
    if with_bootstrap:
        drawn = bootstrap.draws(sums=sample.matrix, copies=sample.copies, rest=sample.rest, seed=seed)
    return {name: _estimate(statistic, sample, drawn, level) for name, statistic in statistics.items()}


def _estimate(statistic: Statistic, sample: Sample, drawn: Floats | Reason, level: float) -> Estimate:
    total = sample.rest + sample.copies @ sample.matrix
    value = float(statistic.of(total))
    if not np.isfinite(value):
        return undefined(statistic.missing, sample.counts)
    default = jackknife.interval(
        value=value,
        without_one=statistic.of(total - sample.matrix),
        copies=sample.copies,
        floor=statistic.floor,
        level=level,
    )
    if isinstance(drawn, Reason):
        return _told(value, sample.counts, default, drawn)
    beside = bootstrap.interval(statistic=statistic.of, drawn=drawn, level=level)
    return _told(value, sample.counts, default, beside)


def of_problems(
    matrix: Floats,
    *,
    copies: Ints,
    is_comparable: Bools,
    units: int,
    pairable: int,
    nothing: Reason = Reason.NO_PAIRS,
) -> Sample:
    """A sample from sums per problem; problems with equal sums are kept once."""
    kinds, kind = alike(matrix[is_comparable])
    of_kind = np.bincount(kind, weights=copies[is_comparable], minlength=len(kinds)).astype(np.int64)
    rest = copies[~is_comparable] @ matrix[~is_comparable]
    counts = Counts(units=units, pairable=pairable, problems=int(of_kind.sum()))
    return Sample(kinds, of_kind, rest, counts, nothing)


def of_patterns(patterns: Patterns) -> tuple[sums.PairSums, Sample]:
    """The sums of step ratings; problems without a unit rated twice stay in, but are never left out or drawn."""
    pairs = sums.of_patterns(patterns)
    return pairs, of_problems(
        pairs.matrix,
        copies=patterns.copies,
        is_comparable=pairs.all_pairs > 0,
        units=patterns.n_units,
        pairable=patterns.n_pairable,
    )


def _told(value: float, counts: Counts, default: Interval | Reason, beside: Interval | Reason) -> Estimate:
    return Estimate(
        value=value,
        counts=counts,
        interval=default if isinstance(default, Interval) else None,
        interval_reason=default if isinstance(default, Reason) else None,
        bootstrap=beside if isinstance(beside, Interval) else None,
        bootstrap_reason=beside if isinstance(beside, Reason) else None,
    )
