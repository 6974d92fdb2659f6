"""Intervals for a share of successes: Wilson's for showing, Clopper and Pearson's where a promise hangs on it.

    Wilson           (p̂ + z²/2n ± z √(p̂(1-p̂)/n + z²/4n²)) / (1 + z²/n)
    Clopper-Pearson  [B(α/2; k, n-k+1), B(1-α/2; k+1, n-k)] with B the beta quantile: covers at least so often

E. B. Wilson (1927), doi:10.1080/01621459.1927.10502953; C. J. Clopper, E. S. Pearson (1934),
doi:10.1093/biomet/26.4.404.
"""

import functools
import math
from statistics import NormalDist

import numpy as np

from stats.arrays import Floats, Ints
from stats.estimates import Interval, Reason

# Quantiles of the beta and of Student's t distribution, from the regularised incomplete beta function.


_TINY = 1e-300


def beta_cdf(*, x: float, a: float, b: float) -> float:
    """I_x(a, b): the probability that a beta(a, b) variable is at most x."""
    if not (a > 0 and b > 0):
        raise ValueError(f"a beta distribution needs positive shapes, not {a} and {b}")
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - beta_cdf(x=1 - x, a=b, b=a)
    front = math.exp(_log_density(x, a, b)) * x * (1 - x) / a
    return min(1.0, front * _continued_fraction(x, a, b))


def beta_quantile(*, p: float, a: float, b: float) -> float:
    """The x at which I_x(a, b) is p."""
    if not 0 <= p <= 1:
        raise ValueError(f"a probability lies in 0..1, not at {p}")
    if p in {0.0, 1.0}:
        return p
    low, high, x = 0.0, 1.0, a / (a + b)
    for _ in range(200):
        missing = beta_cdf(x=x, a=a, b=b) - p
        low, high = (low, x) if missing > 0 else (x, high)
        step = missing / max(math.exp(_log_density(x, a, b)), _TINY)
        following = x - step if low < x - step < high else (low + high) / 2
        if abs(following - x) <= 1e-15 * x:
            break
        x = following
    return x


@functools.lru_cache(maxsize=4096)
def t_quantile(*, p: float, df: float) -> float:
    """The t at which Student's distribution with df degrees of freedom has the probability p below it."""
    if df <= 0:
        raise ValueError(f"Student's t needs at least one degree of freedom, not {df}")
    if not 0 < p < 1:
        raise ValueError(f"a quantile of t needs a probability inside 0..1, not {p}")
    tail = 2 * min(p, 1 - p)
    if tail > 0.5:  # near the middle the other half of the beta keeps the digits
        x = beta_quantile(p=1 - tail, a=0.5, b=df / 2)
        return math.copysign(math.sqrt(df * x / (1 - x)), p - 0.5)
    x = beta_quantile(p=tail, a=df / 2, b=0.5)
    return math.copysign(math.sqrt(df * (1 - x) / x), p - 0.5)


def _log_density(x: float, a: float, b: float) -> float:
    constant = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return constant + (a - 1) * math.log(x) + (b - 1) * math.log1p(-x)


def _continued_fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1.0 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 1000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            value *= d * c
        if abs(d * c - 1) < 1e-16:
            break
    return value


def _away_from_zero(x: float) -> float:
    return x if abs(x) > _TINY else _TINY


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
    tail = (1 - level) / 2
    low = 0.0 if right == 0 else beta_quantile(p=tail, a=right, b=n - right + 1)
    high = 1.0 if right == n else beta_quantile(p=1 - tail, a=right + 1, b=n - right)
    return Interval(low, high, level, "Clopper-Pearson")


def _check_counts(right: int, n: int) -> None:
    if not 0 <= right <= n:
        raise ValueError(f"{right} right of {n} is no share")


# Delete-one-problem jackknife with Student's t on the Fisher scale: the default interval.


MIN_JACKKNIFE_PROBLEMS = 5  # problems


def jackknife_interval(
    *, value: float, without_one: Floats, copies: Ints, floor: float, level: float = 0.95
) -> Interval | Reason:
    """From the value, and the values with a problem of each kind left out; `floor` is the statistic's lower end."""
    if copies.sum() < MIN_JACKKNIFE_PROBLEMS:
        return Reason.FEW_PROBLEMS
    if not np.isfinite(without_one).all():
        return Reason.RESTS_ON_ONE
    if np.ptp(without_one) < 1e-12:
        return Reason.NO_SPREAD
    unit = 1 - 2 * (1 - np.append(without_one, value)) / (1 - floor)
    curved = bool((np.abs(unit) < 1 - 1e-12).all())
    scaled = np.arctanh(unit) if curved else unit
    low, high = _student_interval(float(scaled[-1]), scaled[:-1], copies, level)
    ends = np.tanh([low, high]) if curved else np.clip([low, high], min(-1.0, float(unit[-1])), 1.0)
    found = 1 - (1 - ends) * (1 - floor) / 2
    return Interval(float(found[0]), float(found[1]), level, "jackknife-t by problem")


def _student_interval(middle: float, without_one: Floats, copies: Ints, level: float) -> tuple[float, float]:
    g = int(copies.sum())
    mean = copies @ without_one / g
    spread = float(np.sqrt((g - 1) / g * (copies @ (without_one - mean) ** 2)))
    half = t_quantile(p=(1 + level) / 2, df=g - 1) * spread
    return middle - half, middle + half
