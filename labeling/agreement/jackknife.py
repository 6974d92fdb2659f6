"""Delete-one-problem jackknife with Student's t on the Fisher scale: the default interval.

    z = artanh(θ),   z_(i) = artanh(θ without problem i),   s² = (G-1)/G Σ (z_(i) - mean)²
    interval = tanh(z ± t_{G-1} s)

Steps of one problem are alike, so problems are left out, never steps (resampling steps covers in half of all cases).
Shares go through 2θ - 1, which makes the Fisher scale the logit. Where a value of exactly ±1 has no Fisher scale, the
plain scale is used and cut at its ends. (A weighted AC can lie below -1; so can its interval.)

J. W. Tukey (1958), "Bias and confidence in not-quite large samples", doi:10.1214/aoms/1177706647; B. Efron, C. Stein
(1981), doi:10.1214/aos/1176345462; R. A. Fisher (1915), doi:10.1093/biomet/10.4.507. Clusters: J. N. K. Rao,
C. F. J. Wu (1985), doi:10.1080/01621459.1985.10478165.
"""

import numpy as np

from labeling.agreement.arrays import Floats, Ints
from labeling.agreement.quantiles import t_quantile
from labeling.agreement.result import Interval, Reason

LEAST = 5  # problems


def interval(
    *, value: float, without_one: Floats, copies: Ints, floor: float, level: float = 0.95
) -> Interval | Reason:
    """From the value, and the values with a problem of each kind left out; `floor` is the statistic's lower end."""
    if copies.sum() < LEAST:
        return Reason.FEW_PROBLEMS
    if not np.isfinite(without_one).all():
        return Reason.RESTS_ON_ONE
    if np.ptp(without_one) < 1e-12:
        return Reason.NO_SPREAD
    unit = 1 - 2 * (1 - np.append(without_one, value)) / (1 - floor)
    curved = bool((np.abs(unit) < 1 - 1e-12).all())
    scaled = np.arctanh(unit) if curved else unit
    low, high = _around(float(scaled[-1]), scaled[:-1], copies, level)
    ends = np.tanh([low, high]) if curved else np.clip([low, high], min(-1.0, float(unit[-1])), 1.0)
    found = 1 - (1 - ends) * (1 - floor) / 2
    return Interval(float(found[0]), float(found[1]), level, "jackknife-t by problem")


def _around(middle: float, without_one: Floats, copies: Ints, level: float) -> tuple[float, float]:
    g = int(copies.sum())
    mean = copies @ without_one / g
    spread = float(np.sqrt((g - 1) / g * (copies @ (without_one - mean) ** 2)))
    half = t_quantile(p=(1 + level) / 2, df=g - 1) * spread
    return middle - half, middle + half
