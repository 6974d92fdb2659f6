"""Forecast when a project will be completed, by resampling the pace of the last weeks. Pure arithmetic."""

import datetime as dt
from collections.abc import Sequence

import numpy as np

from charts.progress import CompletionForecast

PACE_DAYS = 21
MIN_ACTIVE_DAYS = 5  # days on which a trace was settled; fewer give no pace
_N_DRAWS = 2000
_MAX_DAYS = 3650


def forecast_completion(daily: Sequence[int], *, remaining: int, today: dt.date) -> CompletionForecast | None:
    """Return the expected completion date, with the range of 90 % of the simulated ones.

    `daily` has the number of traces settled on each of the last days, idle days as 0. Return None if too few days had
    activity.
    """
    pace = np.asarray(daily[-PACE_DAYS:], dtype=np.float64)
    if remaining <= 0 or (pace > 0).sum() < MIN_ACTIVE_DAYS:
        return None
    drawn = np.random.default_rng(0).choice(pace, size=(_N_DRAWS, len(pace))).mean(axis=1)
    days = np.minimum(remaining / np.maximum(drawn, remaining / _MAX_DAYS), _MAX_DAYS)
    first, last = np.quantile(days, [0.05, 0.95])
    likely = min(remaining / pace.mean(), _MAX_DAYS)
    return CompletionForecast(
        *(today + dt.timedelta(days=int(np.ceil(each))) for each in (likely, min(first, likely), max(last, likely)))
    )
