"""Signals that a rater's work may need attention: a value, its interval, the usual value, and whether it is raised.

A signal is raised when its whole interval is on the wrong side of a mark, so that few ratings raise nothing. Speed is
raised by its median, and a run by its probability under chance.

    share    share of n with Wilson's interval, compared with a mark it should stay below, or reach
    decline  share late in a session minus share early, with Newcombe's hybrid of the two Wilson intervals
    speed    median over traces of (log time - median of all) / (1.4826 median absolute deviation of all), with an
             interval from order statistics
    run      the longest run of submissions with the same outcome, and the number of such runs expected by chance:
             n p^run, with p the share of that outcome among all

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

LONG_RUN = 5  # submissions; two equal outcomes at a rare step are no pattern
FAST_MS, _SKIMMED_WORD_MS, _IMPOSSIBLE_WORD_MS = 400, 100, 25
RARE_RUN = 0.01  # expected number of runs below which chance is ruled out
_MAD_SCALE = 1.4826


@dataclass(frozen=True)
class RaterSignal:
    value: float
    low: float
    high: float
    n: int
    usual: float | None  # the value of the other raters, for signals that compare with it
    is_raised: bool


def is_faster_than_reading(*, ms: float, words: int, n_fast: int, n_steps: int) -> bool:
    """Tell whether a trace took less time than anyone needs to read it: over 40 words per second, or over ten with most
    steps rated in less than `FAST_MS`. Fast steps alone say nothing: some people read the whole trace first."""
    is_skimmed = ms < _SKIMMED_WORD_MS * words
    return ms < _IMPOSSIBLE_WORD_MS * words or (is_skimmed and 2 * n_fast > n_steps)


def check_share_below(part: int, n: int, *, below: float, least: int, usual: float | None = None) -> RaterSignal | None:
    """Check that a share stays below a mark. Return None for fewer than `least` cases."""
    if n < least:
        return None
    interval = wilson_interval(right=part, n=n)
    return RaterSignal(part / n, interval.low, interval.high, n, usual, interval.low > below)


def check_share_reaches(
    part: int, n: int, *, mark: float, least: int, usual: float | None = None
) -> RaterSignal | None:
    """Check that a share reaches a mark. Return None for fewer than `least` cases."""
    if n < least:
        return None
    interval = wilson_interval(right=part, n=n)
    return RaterSignal(part / n, interval.low, interval.high, n, usual, interval.high < mark)


def check_decline(early: tuple[int, int], late: tuple[int, int], *, least: int) -> RaterSignal | None:
    """Check whether accuracy falls within sessions, from (right, n) early and late."""
    if min(early[1], late[1]) < least:
        return None
    first, second = (wilson_interval(right=right, n=n) for right, n in (early, late))
    before, after = early[0] / early[1], late[0] / late[1]
    change = after - before
    low = change - math.hypot(after - second.low, first.high - before)
    high = change + math.hypot(second.high - after, before - first.low)
    return RaterSignal(change, low, high, early[1] + late[1], None, high < 0)


def check_speed(own: Floats, others: Floats, *, least: int, mark: float = -2.5) -> RaterSignal | None:
    """Check whether a rater is much faster than others, from the log of time per word of each trace."""
    center = float(np.median(others)) if len(others) else 0.0
    spread = _MAD_SCALE * float(np.median(np.abs(others - center))) if len(others) else 0.0
    if len(own) < least or spread <= 0:
        return None
    scores = np.sort((own - center) / spread)
    n = len(scores)
    rank = max(int(n / 2 - 0.98 * math.sqrt(n)), 0)
    value = float(np.median(scores))
    return RaterSignal(value, float(scores[rank]), float(scores[n - 1 - rank]), n, None, value < mark)


def check_longest_run(ends: Sequence[Hashable], usual: Mapping[Hashable, float], *, least: int) -> RaterSignal | None:
    """Check for runs of equal outcomes.

    `ends` are a rater's outcomes in order, `usual` the share of each outcome among all. In the result, `value` is the
    length of the run, `usual` the expected number of such runs, and the interval is the length itself.
    """
    if len(ends) < least:
        return None
    runs = [(len(list(group)), end) for end, group in groupby(ends)]
    chances = [(len(ends) * usual.get(end, 0.0) ** length, length) for length, end in runs if length >= LONG_RUN]
    chance, length = min(chances, default=(float(len(ends)), max(length for length, _end in runs)))
    return RaterSignal(float(length), float(length), float(length), len(ends), chance, chance < RARE_RUN)
