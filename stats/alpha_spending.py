"""Test repeatedly whether an effect exists, at an error rate over all looks together: alpha spending.

A look compares the standardized effect Z with a boundary. Looks share data: between two looks, √I·Z grows by an
independent normal step with the variance of the new information. The boundary of look k is the value that Z exceeds for
the first time with exactly the error rate that look k may spend, if there is no effect. It is found by numerical
integration over the values that have not crossed before.

O'Brien-Fleming-like spending, one-sided:   α*(t) = 2 - 2Φ(z_{1-α/2} / √t),   t the share of the planned information

K. K. G. Lan, D. L. DeMets (1983), "Discrete sequential boundaries for clinical trials", doi:10.1093/biomet/70.3.659;
P. C. O'Brien, T. R. Fleming (1979), doi:10.2307/2530245; integration: P. Armitage, C. K. McPherson, B. C. Rowe (1969),
"Repeated significance tests on accumulating data", doi:10.2307/2343787.
"""

import functools
import math
from statistics import NormalDist

import numpy as np

from stats.arrays import Floats
from stats.intervals import normal_probabilities

_NORMAL = NormalDist()
_CELLS = 500  # of the integration
_REACH = 8.0  # standard deviations below zero that the integration covers
_HIGHEST = 12.0  # no boundary is above
_BISECTIONS = 50


def spend_like_obrien_fleming(share: float, alpha: float) -> float:
    """Return the error rate that may be spent when this share of the planned information is there."""
    if share <= 0:
        return 0.0
    return 2 - 2 * _NORMAL.cdf(_NORMAL.inv_cdf(1 - alpha / 2) / math.sqrt(min(1.0, share)))


@functools.lru_cache(maxsize=64)
def compute_boundaries(information: tuple[float, ...], spent: tuple[float, ...]) -> tuple[float, ...]:
    """Return the boundary of each look. `information` grows from look to look in any unit, and `spent` is the error
    rate spent up to each look."""
    scale = information[0]
    times = [each / scale for each in information]
    boundaries: list[float] = []
    # Of the sum at the look before, among runs that have not crossed.
    places: Floats = np.zeros(1)
    masses: Floats = np.ones(1)
    before, used = 0.0, 0.0
    for time, total in zip(times, spent, strict=True):
        step = math.sqrt(time - before)
        boundary = _find_boundary(places, masses, step, math.sqrt(time), max(0.0, total - used))
        boundaries.append(boundary)
        top, bottom = boundary * math.sqrt(time), -_REACH * math.sqrt(time)
        width = (top - bottom) / _CELLS
        middles = bottom + width * (np.arange(_CELLS) + 0.5)
        edges = (bottom + width * np.arange(_CELLS + 1))[:, None]
        masses = np.asarray(np.diff(normal_probabilities((edges - places) / step), axis=0) @ masses, dtype=np.float64)
        places, before, used = np.asarray(middles, dtype=np.float64), time, total
    return tuple(boundaries)


def _find_boundary(places: Floats, masses: Floats, step: float, root: float, rate: float) -> float:
    """Return the boundary that is crossed at this look with probability `rate`."""
    low, high = 0.0, _HIGHEST
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        crossing = float((1 - normal_probabilities((middle * root - places) / step)) @ masses)
        low, high = (middle, high) if crossing > rate else (low, middle)
    return high
