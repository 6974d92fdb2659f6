"""The cost to finish: its value on known numbers, its reasons, and the coverage of its interval."""

import numpy as np
import pytest

from stats import cost_forecast
from stats.cost_forecast import RemainingWork
from stats.estimates import Reason

WORK = RemainingWork(slots=100, unfinished=40, finished=50, further=10)


def test_value_is_labels_times_cost_per_label() -> None:
    forecast = cost_forecast.forecast_cost(pay=[10.0, 30.0], labels=[10, 10], work=WORK)
    assert forecast.labels == pytest.approx(108)
    assert forecast.value == pytest.approx(216)
    assert (forecast.low, forecast.interval_reason) == (None, Reason.FEW_LABELERS)


def test_without_labels_there_is_no_value() -> None:
    assert cost_forecast.forecast_cost(pay=[], labels=[], work=WORK).reason == Reason.NO_CASES


def test_reopened_work_costs_more() -> None:
    costs = [
        cost_forecast.forecast_cost(pay=[1.0] * 6, labels=[5] * 6, work=WORK._replace(slots=slots)).value or 0
        for slots in (100, 150)
    ]
    assert costs[1] - costs[0] == pytest.approx(10)


def test_interval_covers_the_cost_of_another_draw_of_raters() -> None:
    dice, hits, n = np.random.default_rng(5), 0, 400
    for _ in range(n):
        speeds = dice.lognormal(0.0, 0.4, 16)
        labels = dice.integers(20, 60, 16)
        pay = speeds * labels * dice.normal(1, 0.05, 16)
        past, future = slice(8), slice(8, 16)
        further, more = dice.poisson(0.2 * 300), dice.poisson(0.2 * 200)
        work = RemainingWork(slots=400, unfinished=200, finished=300, further=int(further))
        forecast = cost_forecast.forecast_cost(pay=pay[past].tolist(), labels=labels[past].tolist(), work=work)
        truth = (400 + more) * pay[future].sum() / labels[future].sum()
        hits += (forecast.low or 0) <= truth <= (forecast.high or 0)
    assert hits / n == pytest.approx(0.95, abs=0.035)
