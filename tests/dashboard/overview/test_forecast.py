"""Forecasts hold what they promise, and say nothing where nothing can be said."""

import datetime as dt

import numpy as np
import pytest

from dashboard.overview import forecast

TODAY = dt.date(2026, 11, 18)


def test_end_needs_some_days_and_something_left() -> None:
    assert forecast.forecast_completion([5, 5, 5, 5], remaining=10, today=TODAY) is None
    assert forecast.forecast_completion([5] * 10, remaining=0, today=TODAY) is None
    assert forecast.forecast_completion([], remaining=10, today=TODAY) is None


def test_end_of_a_steady_pace_is_a_day() -> None:
    found = forecast.forecast_completion([5] * 21, remaining=50, today=TODAY)
    assert found is not None
    assert {found.first, found.on, found.last} == {TODAY + dt.timedelta(days=10)}


def test_end_counts_the_last_weeks_and_never_fails_on_far_ones() -> None:
    assert forecast.forecast_completion(
        [1000] * 40 + [1] * 21, remaining=21, today=TODAY
    ) == forecast.forecast_completion([1] * 21, remaining=21, today=TODAY)
    assert forecast.forecast_completion([1, 1, 1, 1, 1], remaining=10**9, today=TODAY) is not None


@pytest.mark.parametrize("rate", [1.0, 8.0])
def test_end_lies_in_its_span_in_most_futures(rate: float) -> None:
    """Days of the same kind go on until the work is done; the span is drawn before."""
    dice = np.random.default_rng(3)
    remaining, hits, runs = 30 * rate, 0, 200
    for _ in range(runs):
        found = forecast.forecast_completion(dice.poisson(rate, 21).tolist(), remaining=int(remaining), today=TODAY)
        future = np.cumsum(dice.poisson(rate, 400))
        took = int(np.searchsorted(future, remaining)) + 1
        assert found is not None
        hits += found.first <= TODAY + dt.timedelta(days=took) <= found.last
    assert hits / runs >= 0.7
