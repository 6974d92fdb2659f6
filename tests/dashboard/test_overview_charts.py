"""The forecast: its coverage, and when there is none."""

import datetime as dt

import numpy as np
import pytest

from dashboard.overview_charts import forecast_completion

TODAY = dt.date(2026, 11, 18)


def test_forecast_needs_active_days_and_remaining_traces() -> None:
    assert forecast_completion([5, 5, 5, 5], remaining=10, today=TODAY) is None
    assert forecast_completion([5] * 10, remaining=0, today=TODAY) is None
    assert forecast_completion([], remaining=10, today=TODAY) is None


def test_steady_pace_has_one_completion_date() -> None:
    found = forecast_completion([5] * 21, remaining=50, today=TODAY)
    assert found is not None
    assert {found.first, found.on, found.last} == {TODAY + dt.timedelta(days=10)}


def test_forecast_uses_the_last_weeks_and_accepts_huge_projects() -> None:
    assert forecast_completion([1000] * 40 + [1] * 21, remaining=21, today=TODAY) == forecast_completion(
        [1] * 21, remaining=21, today=TODAY
    )
    assert forecast_completion([1, 1, 1, 1, 1], remaining=10**9, today=TODAY) is not None


@pytest.mark.parametrize("rate", [1.0, 8.0])
def test_range_covers_most_simulated_futures(rate: float) -> None:
    """Continue at the same daily rate until all traces are settled."""
    dice = np.random.default_rng(3)
    remaining, hits, runs = 30 * rate, 0, 200
    for _ in range(runs):
        found = forecast_completion(dice.poisson(rate, 21).tolist(), remaining=int(remaining), today=TODAY)
        future = np.cumsum(dice.poisson(rate, 400))
        took = int(np.searchsorted(future, remaining)) + 1
        assert found is not None
        hits += found.first <= TODAY + dt.timedelta(days=took) <= found.last
    assert hits / runs >= 0.7
