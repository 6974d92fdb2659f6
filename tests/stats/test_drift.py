"""The drift test: its stated error rates, by computation and by simulation."""

import math

import numpy as np
import pytest

from bench import machine_raters
from stats import (
    drift,
)


@pytest.mark.parametrize("p0", [0.8, 0.85, 0.9, 0.95, 0.99])
def test_drift_plan_catches_ten_points_within_sixty_tests(p0: float) -> None:
    plan = drift.plan_drift_test(p0)
    assert plan.power >= 0.9
    assert plan.false_alarms < 0.55
    random = np.random.default_rng(1)
    caught = [drift.find_alarm((random.random(60) < p0 - 0.1).tolist(), plan) is not None for _ in range(1500)]
    assert np.mean(caught) == pytest.approx(plan.power, abs=0.03)


def test_drift_alarm_needs_several_disagreements() -> None:
    plan = drift.plan_drift_test(0.95)
    assert drift.find_alarm([True] * 500, plan) is None
    assert drift.find_alarm([True] * 5 + [False] * 9, plan) == 5 + math.ceil(plan.threshold / plan.weight)


@pytest.mark.fault
@pytest.mark.parametrize("precision", [0.9, 0.95, 0.98])
def test_drift_is_caught_although_the_precision_was_only_measured(precision: float) -> None:
    found = machine_raters.measure_drift(precision, runs=1500)
    assert found.caught >= 0.9
    assert found.false_alarms <= 0.4
