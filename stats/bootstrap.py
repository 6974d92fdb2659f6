"""Percentile bootstrap over problems, shown beside the default interval from 30 problems on.

Problems are drawn with replacement, a statistic is computed from the summed sums of each draw, and the interval runs
between its quantiles. Problems with equal sums are drawn together (a multinomial over the different ones), so a million
problems of fifty kinds cost as much as fifty. From five thousand kinds on, problems are put together at random in as
many groups, which are drawn in their place: their totals have the variance that those of problems have, known to 2 %,
where the ends of a thousand draws are known to 4 %.

B. Efron (1979), "Bootstrap methods: another look at the jackknife", doi:10.1214/aos/1176344552.
"""

from collections.abc import Callable

import numpy as np

from stats.arrays import Floats, Ints
from stats.estimates import Interval, Reason

MIN_PROBLEMS = 30  # problems
MAX_GROUPS = 5000  # kinds, or groups of problems
_DRAWS = 1000
_BLOCK_CELLS = 4_000_000  # cells of a block of draws


def draw_resamples(*, sums: Floats, copies: Ints, rest: Floats, seed: int = 0) -> Floats | Reason:
    """A thousand resampled totals; `sums` (G, S), each of `copies` problems, are drawn, `rest` (S) is in every draw.

    One set of draws serves all statistics of a sample.
    """
    problems = int(copies.sum())
    if problems < MIN_PROBLEMS:
        return Reason.FEW_FOR_BOOTSTRAP
    random = np.random.default_rng(seed)
    if len(sums) > MAX_GROUPS:
        sums, copies = _groups(sums, copies, random)
        problems = MAX_GROUPS
    block = max(1, _BLOCK_CELLS // len(sums))
    sizes = [min(block, _DRAWS - start) for start in range(0, _DRAWS, block)]
    totals = [_draw_counts(copies, problems, size, random) @ sums for size in sizes]
    return np.asarray(rest + np.concatenate(totals))


def bootstrap_interval(
    *, statistic: Callable[[Floats], Floats], drawn: Floats, level: float = 0.95
) -> Interval | Reason:
    values = statistic(drawn)
    if not np.isfinite(values).all():
        return Reason.DRAWS_UNDEFINED
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level, "percentile bootstrap by problem")


def _groups(sums: Floats, copies: Ints, random: np.random.Generator) -> tuple[Floats, Ints]:
    """The problems dealt out at random, as many to each group as to any other, or one more."""
    group = np.arange(int(copies.sum())) % MAX_GROUPS
    random.shuffle(group)
    problems = np.repeat(np.arange(len(sums)), copies)
    dealt = [np.bincount(group, weights=column[problems], minlength=MAX_GROUPS) for column in sums.T]
    return np.stack(dealt, axis=1), np.ones(MAX_GROUPS, dtype=np.int64)


def _draw_counts(copies: Ints, problems: int, size: int, random: np.random.Generator) -> Floats:
    """(size, kinds): how often problems of each kind come up in so many draws."""
    kinds = len(copies)
    if problems > 4 * kinds:
        return random.multinomial(problems, copies / problems, size=size).astype(np.float64)
    # Nearly every problem is a kind of its own: picking problems one by one is then four times as fast.
    kind_of_problem = np.repeat(np.arange(kinds), copies)
    picked = kind_of_problem[random.integers(0, problems, (size, problems))] + kinds * np.arange(size)[:, None]
    return np.bincount(picked.ravel(), minlength=size * kinds).reshape(size, kinds).astype(np.float64)
