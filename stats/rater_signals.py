"""Signs that somebody's ratings should be looked at: a figure, its interval, what is usual, and whether it is raised.

A sign is raised where the whole interval lies on the wrong side of a mark, so that few ratings raise nothing; of
quickness the middle decides, and of runs those of five or more that chance hardly gives.

    share      of n, by Wilson, against a mark that it should stay below, or reach
    slope      share late in a sitting minus share early, by Newcombe's hybrid of the two Wilson intervals
    quickness  median over traces of (log time - median of all) / (1.4826 median absolute deviation of all), its
               interval by order statistics
    run        the longest run of readings that end alike, and how many such runs chance would give: n p^run, where p is
               the share of that end among all

E. B. Wilson (1927), doi:10.1080/01621459.1927.10502953; R. G. Newcombe (1998),
doi:10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I; C. Leys et al. (2013), "Detecting outliers",
doi:10.1016/j.jesp.2013.03.013; J. A. Johnson (2005), "Ascertaining the validity of protocols" (long strings),
doi:10.1016/j.jrp.2004.09.009.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from stats.arrays import Floats
from stats.intervals import wilson_interval

LONG_RUN = 5  # readings of a run: two alike at a step that others hardly ever name are no straight line
RARE_RUN = 0.01  # runs that chance gives less often than this are no chance
_MAD_SCALE = 1.4826


@dataclass(frozen=True)
class RaterSignal:
    value: float
    low: float
    high: float
    n: int
    usual: float | None  # of the others, where that is what it is held against
    is_raised: bool


def check_share_below(part: int, n: int, *, below: float, least: int, usual: float | None = None) -> RaterSignal | None:
    """Should stay below the mark. None where there are too few to say anything."""
    if n < least:
        return None
    around = wilson_interval(right=part, n=n)
    return RaterSignal(part / n, around.low, around.high, n, usual, around.low > below)


def check_share_reaches(
    part: int, n: int, *, mark: float, least: int, usual: float | None = None
) -> RaterSignal | None:
    """Should reach the mark."""
    found = check_share_below(part, n, below=1.0, least=least, usual=usual)
    return None if found is None else RaterSignal(found.value, found.low, found.high, n, usual, found.high < mark)


def check_decline(early: tuple[int, int], late: tuple[int, int], *, least: int) -> RaterSignal | None:
    """(right, n) of both parts of a sitting; raised where it falls for sure."""
    if min(early[1], late[1]) < least:
        return None
    first, second = (wilson_interval(right=right, n=n) for right, n in (early, late))
    before, after = early[0] / early[1], late[0] / late[1]
    fall = after - before
    low = fall - math.hypot(after - second.low, first.high - before)
    high = fall + math.hypot(second.high - after, before - first.low)
    return RaterSignal(fall, low, high, early[1] + late[1], None, high < 0)


def check_speed(mine: Floats, everybody: Floats, *, least: int, mark: float = -2.5) -> RaterSignal | None:
    """Logs of time per word, a trace each."""
    middle = float(np.median(everybody)) if len(everybody) else 0.0
    spread = _MAD_SCALE * float(np.median(np.abs(everybody - middle))) if len(everybody) else 0.0
    if len(mine) < least or spread <= 0:
        return None
    apart = np.sort((mine - middle) / spread)
    n = len(apart)
    rank = max(int(n / 2 - 0.98 * math.sqrt(n)), 0)
    value = float(np.median(apart))
    return RaterSignal(value, float(apart[rank]), float(apart[n - 1 - rank]), n, None, value < mark)


def check_longest_run(ends: Sequence[Hashable], usual: Mapping[Hashable, float], *, least: int) -> RaterSignal | None:
    """`ends` of one rater in order, `usual` the share of each end among all. As `value` the longest run; as `usual` how
    many runs of that length and kind chance would give. A length has no interval: low and high are the length."""
    if len(ends) < least:
        return None
    runs = [(len(list(group)), end) for end, group in groupby(ends)]
    chances = [(len(ends) * usual.get(end, 0.0) ** length, length) for length, end in runs if length >= LONG_RUN]
    chance, length = min(chances, default=(float(len(ends)), max(length for length, _end in runs)))
    return RaterSignal(float(length), float(length), float(length), len(ends), chance, chance < RARE_RUN)
