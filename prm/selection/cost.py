"""The expected cost of labeling a trace, in seconds. Raters stop at the first error, so later steps cost less.

    C = c₀ + Σ_i S_{i-1} c_i,   c_i = seconds per step + seconds per word · words

The default rates are starting values. They are fitted to measured active time by least squares, never below zero,
because people and projects differ. The slowest 5 % relative to the first fit (interruptions) are dropped before the
second one.
"""

from dataclasses import dataclass

import numpy as np

from prm.selection.pool import Pool, still_right_before
from stats.arrays import Floats, Ints

MIN_TIMED_READINGS = 100
_FITTED_QUANTILE = 0.95
_MIN_SECONDS = 1.0


@dataclass(frozen=True)
class ReadingRates:
    """Seconds to open a trace, per step and per word."""

    opening: float = 8.0
    step: float = 2.0
    word: float = 0.25


def expected_seconds(pool: Pool, reading: ReadingRates) -> Floats:
    step_seconds = reading.step + reading.word * pool.words
    seconds = reading.opening + pool.sum_per_trace(still_right_before(pool) * step_seconds)
    return np.maximum(seconds, _MIN_SECONDS)


def fit_reading_rates(*, seconds: Floats, steps_read: Ints, words_read: Ints) -> ReadingRates:
    """Fit the rates to the active time of submissions."""
    design = np.column_stack([np.ones(len(seconds)), steps_read, words_read]).astype(np.float64)
    residuals = seconds - design @ _fit_nonnegative(design, seconds)
    is_usual = residuals <= np.quantile(residuals, _FITTED_QUANTILE) if len(residuals) else residuals > 0
    return ReadingRates(*_fit_nonnegative(design[is_usual], seconds[is_usual]).tolist())


def _fit_nonnegative(design: Floats, seconds: Floats) -> Floats:
    """Fix rates that would be negative at zero and fit the others again."""
    rates, is_free = np.zeros(3), np.ones(3, dtype=np.bool_)
    while is_free.any():
        solution = np.linalg.lstsq(design[:, is_free], seconds, rcond=None)[0]
        if (solution >= 0).all():
            rates[is_free] = solution
            break
        is_free[np.flatnonzero(is_free)[solution < 0]] = False
    return rates
