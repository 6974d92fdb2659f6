"""Confidence intervals: Wilson for display, Clopper-Pearson for promises, jackknife and bootstrap for statistics.

    Wilson           (p̂ + z²/2n ± z √(p̂(1-p̂)/n + z²/4n²)) / (1 + z²/n)
    Clopper-Pearson  [B(α/2; k, n-k+1), B(1-α/2; k+1, n-k)] with B the beta quantile; never covers less than 1-α
    Newcombe         d - √((p₁-l₁)² + (u₂-p₂)²), d + √((u₁-p₁)² + (p₂-l₂)²) with Wilson's l and u of each share
    jackknife        Student's t on the Fisher scale over the values with one problem left out
    bootstrap        quantiles over resamples of the problems, shown beside the jackknife from 30 problems on

Each resample draws problems with replacement and adds up their sums. Problems with equal sums are drawn together (a
multinomial over the distinct ones), so a million problems of fifty kinds cost as much as fifty. Above 5,000 kinds,
problems are dealt at random into 5,000 groups, and groups are drawn instead: their totals have the variance of the
problems' totals to within 2 %, while the ends of 1,000 resamples are known to 4 %.

scipy.special is imported inside the functions that need it: it takes 20 MB, and the web processes, which show stored
intervals and compute only Wilson's, never load it.

E. B. Wilson (1927), doi:10.1080/01621459.1927.10502953; C. J. Clopper, E. S. Pearson (1934),
doi:10.1093/biomet/26.4.404; R. G. Newcombe (1998), doi:10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I
(method 10); B. Efron (1979), "Bootstrap methods: another look at the jackknife",
doi:10.1214/aos/1176344552.
"""

import functools
import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from stats.arrays import Floats, Ints
from stats.estimates import Interval, Reason

MIN_JACKKNIFE_PROBLEMS, MIN_BOOTSTRAP_PROBLEMS = 5, 30
MAX_GROUPS = 5000
_DRAWS = 1000
_BLOCK_CELLS = 4_000_000


def wilson_interval(*, right: int, n: int, level: float = 0.95) -> Interval:
    _check_counts(right, n)
    z = NormalDist().inv_cdf((1 + level) / 2)
    if n == 0:
        return Interval(0.0, 1.0, level, "Wilson")
    share, z2 = right / n, z * z
    middle = share + z2 / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    low = 0.0 if right == 0 else (middle - half) / (1 + z2 / n)
    high = 1.0 if right == n else (middle + half) / (1 + z2 / n)
    return Interval(low, high, level, "Wilson")


def clopper_pearson_interval(*, right: int, n: int, level: float = 0.95) -> Interval:
    _check_counts(right, n)
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = 0.0 if right == 0 else float(betaincinv(right, n - right + 1, tail))
    high = 1.0 if right == n else float(betaincinv(right + 1, n - right, 1 - tail))
    return Interval(low, high, level, "Clopper-Pearson")


def difference_interval(*, right: int, n: int, other_right: int, other_n: int, level: float = 0.95) -> Interval:
    """Return Newcombe's interval for the difference of two independent shares, the first minus the other."""
    own = wilson_interval(right=right, n=n, level=level)
    other = wilson_interval(right=other_right, n=other_n, level=level)
    if n == 0 or other_n == 0:
        return Interval(-1.0, 1.0, level, "Newcombe")
    share, other_share = right / n, other_right / other_n
    difference = share - other_share
    low = difference - math.hypot(share - own.low, other.high - other_share)
    high = difference + math.hypot(own.high - share, other_share - other.low)
    return Interval(low, high, level, "Newcombe")


def _check_counts(right: int, n: int) -> None:
    if not 0 <= right <= n:
        raise ValueError(f"{right} right of {n} is not a share")


@functools.lru_cache(maxsize=4096)
def t_quantile(*, p: float, df: float) -> float:
    """Return the quantile of Student's t distribution with `df` degrees of freedom."""
    from scipy.special import stdtrit

    if df <= 0 or not 0 < p < 1:
        raise ValueError(f"Student's t has no quantile for p = {p} and df = {df}")
    return float(stdtrit(df, p))


def t_probability(*, value: float, df: float) -> float:
    """Return the probability that Student's t is at most `value`."""
    from scipy.special import stdtr

    return float(stdtr(df, value))


def normal_probabilities(values: Floats) -> Floats:
    """Return for each value the probability that a standard normal variable is at most as large."""
    from scipy.special import ndtr

    return np.asarray(ndtr(values), dtype=np.float64)


def beta_quantile(*, a: float, b: float, p: float) -> float:
    from scipy.special import betaincinv

    return float(betaincinv(a, b, p))


def chi_squared_quantile(*, p: float, df: int) -> float:
    from scipy.special import chdtri

    return float(chdtri(df, 1 - p))


def jackknife_interval(
    *, value: float, without_one: Floats, floor: float, copies: Ints | None = None, level: float = 0.95
) -> Interval | Reason:
    """Return the default interval of a statistic.

    `without_one` are the values with one problem of each kind left out, `copies` the number of problems of each kind
    (by default one), and `floor` is the lower end of the statistic's range.
    """
    if copies is None:
        copies = np.ones(len(without_one), dtype=np.int64)
    if copies.sum() < MIN_JACKKNIFE_PROBLEMS:
        return Reason.FEW_PROBLEMS
    if not np.isfinite(without_one).all():
        return Reason.RESTS_ON_ONE
    if np.ptp(without_one) < 1e-12:
        return Reason.NO_SPREAD
    unit = 1 - 2 * (1 - np.append(without_one, value)) / (1 - floor)
    is_curved = bool((np.abs(unit) < 1 - 1e-12).all())
    scaled = np.arctanh(unit) if is_curved else unit
    g, scaled_ones = int(copies.sum()), scaled[:-1]
    spread = float(np.sqrt((g - 1) / g * (copies @ (scaled_ones - copies @ scaled_ones / g) ** 2)))
    half = t_quantile(p=(1 + level) / 2, df=g - 1) * spread
    low, high = scaled[-1] - half, scaled[-1] + half
    ends = np.tanh([low, high]) if is_curved else np.clip([low, high], min(-1.0, float(unit[-1])), 1.0)
    low, high = 1 - (1 - ends) * (1 - floor) / 2
    return Interval(float(low), float(high), level, "jackknife-t by problem")


def draw_resamples(*, sums: Floats, copies: Ints, rest: Floats) -> Floats | Reason:
    """Return 1,000 resampled totals, which serve all statistics of a sample.

    `sums` (G, S) are drawn, each of them `copies` problems; `rest` (S) is added to every resample.
    """
    problems = int(copies.sum())
    if problems < MIN_BOOTSTRAP_PROBLEMS:
        return Reason.FEW_FOR_BOOTSTRAP
    random = np.random.default_rng(0)
    if len(sums) > MAX_GROUPS:
        sums, copies = _deal_into_groups(sums, copies, random)
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


def _deal_into_groups(sums: Floats, copies: Ints, random: np.random.Generator) -> tuple[Floats, Ints]:
    """Deal the problems at random into groups whose sizes differ by one at most."""
    group = np.arange(int(copies.sum())) % MAX_GROUPS
    random.shuffle(group)
    problems = np.repeat(np.arange(len(sums)), copies)
    columns = [np.bincount(group, weights=column[problems], minlength=MAX_GROUPS) for column in sums.T]
    return np.stack(columns, axis=1), np.ones(MAX_GROUPS, dtype=np.int64)


def _draw_counts(copies: Ints, problems: int, size: int, random: np.random.Generator) -> Floats:
    """Return (size, kinds): how often each resample draws problems of each kind."""
    kinds = len(copies)
    if problems > 4 * kinds:
        return random.multinomial(problems, copies / problems, size=size).astype(np.float64)
    # Nearly every problem is its own kind: drawing problems one by one is four times as fast.
    kind_of_problem = np.repeat(np.arange(kinds), copies)
    drawn = kind_of_problem[random.integers(0, problems, (size, problems))] + kinds * np.arange(size)[:, None]
    return np.bincount(drawn.ravel(), minlength=size * kinds).reshape(size, kinds).astype(np.float64)
