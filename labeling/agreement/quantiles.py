"""Quantiles of the beta and of Student's t distribution, from the regularised incomplete beta function.

The continued fraction is evaluated by the modified Lentz method: W. J. Lentz (1976), doi:10.1364/AO.15.000668;
I. J. Thompson, A. R. Barnett (1986), doi:10.1016/0021-9991(86)90046-X; formula 8.17.22 of https://dlmf.nist.gov/8.17.
The inverse is Newton's step where it stays inside the bracket, else a halving. Scalars only: intervals need few.
"""

import functools
import math

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
