"""Intervals for a share of successes: Wilson's for showing, Clopper and Pearson's where a promise hangs on it.

    Wilson           (p̂ + z²/2n ± z √(p̂(1-p̂)/n + z²/4n²)) / (1 + z²/n)
    Clopper-Pearson  [B(α/2; k, n-k+1), B(1-α/2; k+1, n-k)] with B the beta quantile: covers at least so often

E. B. Wilson (1927), doi:10.1080/01621459.1927.10502953; C. J. Clopper, E. S. Pearson (1934),
doi:10.1093/biomet/26.4.404.
"""

import math
from statistics import NormalDist

from labeling.agreement.quantiles import beta_quantile
from labeling.agreement.result import Interval


def wilson(*, right: int, n: int, level: float = 0.95) -> Interval:
    _check(right, n)
    z = NormalDist().inv_cdf((1 + level) / 2)
    if n == 0:
        return Interval(0.0, 1.0, level, "Wilson")
    share, z2 = right / n, z * z
    middle = share + z2 / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    low = 0.0 if right == 0 else (middle - half) / (1 + z2 / n)
    high = 1.0 if right == n else (middle + half) / (1 + z2 / n)
    return Interval(low, high, level, "Wilson")


def clopper_pearson(*, right: int, n: int, level: float = 0.95) -> Interval:
    _check(right, n)
    tail = (1 - level) / 2
    low = 0.0 if right == 0 else beta_quantile(p=tail, a=right, b=n - right + 1)
    high = 1.0 if right == n else beta_quantile(p=1 - tail, a=right + 1, b=n - right)
    return Interval(low, high, level, "Clopper-Pearson")


def _check(right: int, n: int) -> None:
    if not 0 <= right <= n:
        raise ValueError(f"{right} right of {n} is no share")
