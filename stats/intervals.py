"""Confidence intervals: Wilson for display, Clopper-Pearson for promises, cluster jackknife for statistics.

    Wilson           (p̂ + z²/2n ± z √(p̂(1-p̂)/n + z²/4n²)) / (1 + z²/n)
    Clopper-Pearson  [B(α/2; k, n-k+1), B(1-α/2; k+1, n-k)] with B the beta quantile; never covers less than 1-α
    jackknife        Student's t on the Fisher scale over the values with one problem left out

scipy.special is imported inside the functions that need it: it takes 20 MB, and the web processes, which show stored
intervals and compute only Wilson's, never load it.

E. B. Wilson (1927), doi:10.1080/01621459.1927.10502953; C. J. Clopper, E. S. Pearson (1934),
doi:10.1093/biomet/26.4.404.
"""

import functools
import math
from statistics import NormalDist

import numpy as np

from stats.arrays import Floats, Ints
from stats.estimates import Interval, Reason

MIN_JACKKNIFE_PROBLEMS = 5


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


def jackknife_interval(
    *, value: float, without_one: Floats, copies: Ints, floor: float, level: float = 0.95
) -> Interval | Reason:
    """Return the default interval of a statistic.

    `without_one` are the values with one problem of each kind left out, `copies` the number of problems of each kind,
    and `floor` is the lower end of the statistic's range.
    """
    if copies.sum() < MIN_JACKKNIFE_PROBLEMS:
        return Reason.FEW_PROBLEMS
    if not np.isfinite(without_one).all():
        return Reason.RESTS_ON_ONE
    if np.ptp(without_one) < 1e-12:
        return Reason.NO_SPREAD
    unit = 1 - 2 * (1 - np.append(without_one, value)) / (1 - floor)
    is_curved = bool((np.abs(unit) < 1 - 1e-12).all())
    scaled = np.arctanh(unit) if is_curved else unit
    low, high = _student_interval(float(scaled[-1]), scaled[:-1], copies, level)
    ends = np.tanh([low, high]) if is_curved else np.clip([low, high], min(-1.0, float(unit[-1])), 1.0)
    low, high = 1 - (1 - ends) * (1 - floor) / 2
    return Interval(float(low), float(high), level, "jackknife-t by problem")


def _student_interval(middle: float, without_one: Floats, copies: Ints, level: float) -> tuple[float, float]:
    g = int(copies.sum())
    mean = copies @ without_one / g
    spread = float(np.sqrt((g - 1) / g * (copies @ (without_one - mean) ** 2)))
    half = t_quantile(p=(1 + level) / 2, df=g - 1) * spread
    return middle - half, middle + half
