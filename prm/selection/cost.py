"""What reading a trace is expected to cost, in seconds: raters stop at the first error, so later steps cost less.

    C = c₀ + Σ_i S_{i-1} c_i,   c_i = seconds a step + seconds a word · words

The rates are starting values and are fitted anew from measured active time (least squares, never below zero): people
differ, and so do projects. The twentieth that took longest beyond what was expected is left out, and the others fitted
anew: somebody was called away.
"""

from dataclasses import dataclass

import numpy as np

from prm.selection import survival
from prm.selection.pool import Pool
from stats.arrays import Floats, Ints

MIN_TIMED_READINGS = 100  # timed readings
_USUAL = 0.95
_LEAST_SECONDS = 1.0


@dataclass(frozen=True)
class ReadingRates:
    """Seconds: to open a trace, for each step, for each word."""

    opening: float = 8.0
    step: float = 2.0
    word: float = 0.25


def expected_seconds(pool: Pool, reading: ReadingRates) -> Floats:
    of_steps = reading.step + reading.word * pool.words
    found = reading.opening + pool.per_trace(survival.still_right_before(pool) * of_steps)
    return np.maximum(found, _LEAST_SECONDS)


def fit_reading_rates(*, seconds: Floats, steps_read: Ints, words_read: Ints) -> ReadingRates:
    """From the active time of submissions."""
    design = np.column_stack([np.ones(len(seconds)), steps_read, words_read]).astype(np.float64)
    beyond = seconds - design @ _fit_nonnegative(design, seconds)
    usual = beyond <= np.quantile(beyond, _USUAL) if len(beyond) else beyond > 0
    return ReadingRates(*_fit_nonnegative(design[usual], seconds[usual]).tolist())


def _fit_nonnegative(design: Floats, seconds: Floats) -> Floats:
    """A rate that would be negative is left at zero and the others fitted anew."""
    rates, kept = np.zeros(3), np.ones(3, dtype=np.bool_)
    while kept.any():
        found = np.linalg.lstsq(design[:, kept], seconds, rcond=None)[0]
        if (found >= 0).all():
            rates[kept] = found
            break
        kept[np.flatnonzero(kept)[found < 0]] = False
    return rates
