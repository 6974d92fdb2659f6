"""Prediction-powered figures: the formulas of the paper, and coverage in simulated worlds."""

import math

import numpy as np
import pytest

from bench import machine_raters
from stats import (
    prediction_powered,
)
from stats.estimates import Reason


def test_tuning_is_that_of_the_paper_for_separate_samples() -> None:
    """λ = Cov(Y, f) / ((1 + n/N) Var f), here with the variance of each sample."""
    random = np.random.default_rng(7)
    n, n_pool = 200, 2000
    values = (random.random(n + n_pool) < 0.3).astype(float)
    predicted = np.clip(0.5 * values + random.normal(0.2, 0.2, n + n_pool), 0, 1)
    is_labeled = np.arange(n + n_pool) < n
    pool = prediction_powered.label_pool(
        values=np.where(is_labeled, values, 0.0),
        weights=is_labeled.astype(float),
        predicted=predicted,
        problems=np.arange(n + n_pool),
        in_pool=~is_labeled,
    )
    found = prediction_powered.estimate_with_predictions(pool)
    y, f, rest = values[:n], predicted[:n], predicted[n:]
    covariance, within, beyond = np.cov(y, f, bias=True)[0, 1] / n, f.var() / n, rest.var() / n_pool
    tuning = covariance / (within + beyond)
    assert found.tuning == pytest.approx(tuning, rel=1e-9)
    assert found.value == pytest.approx(tuning * rest.mean() + (y - tuning * f).mean(), rel=1e-9)
    assert found.human == pytest.approx(y.mean())
    error = math.sqrt(n / (n - 2) * (((y - tuning * f).var() / n) + tuning**2 * beyond))
    assert found.interval is not None
    assert found.value is not None
    width = 2 * 1.972 * error / (found.value * (1 - found.value))
    ends = [math.log(end / (1 - end)) for end in (found.interval.low, found.interval.high)]
    assert ends[1] - ends[0] == pytest.approx(width, rel=0.01)


def test_constant_machine_changes_nothing_and_a_perfect_one_gives_the_pool() -> None:
    random = np.random.default_rng(1)
    values, is_labeled = (random.random(600) < 0.3).astype(float), random.random(600) < 0.3
    arguments = {"values": values, "weights": is_labeled.astype(float), "problems": np.arange(600)}
    constant = prediction_powered.estimate_with_predictions(
        prediction_powered.label_pool(**arguments, predicted=np.full(600, 0.4))
    )
    assert (constant.value, constant.reason) == (None, Reason.NO_DEPENDENCE)
    assert constant.human == pytest.approx(values[is_labeled].mean())
    perfect = prediction_powered.estimate_with_predictions(prediction_powered.label_pool(**arguments, predicted=values))
    assert perfect.value == pytest.approx(values.mean(), abs=0.002)
    assert perfect.saved_share is not None
    assert perfect.saved_share > 0.4


def test_covariates_help_as_far_as_they_predict() -> None:
    random = np.random.default_rng(3)
    values, is_labeled = (random.random(3000) < 0.3).astype(float), np.arange(3000) < 200
    machine, outcome = (np.where(random.random(3000) < 0.2, 1 - values, values) for _ in range(2))
    arguments = {"values": values, "weights": is_labeled.astype(float), "problems": np.arange(3000)}
    alone = prediction_powered.estimate_with_predictions(prediction_powered.label_pool(**arguments, predicted=machine))
    columns = np.stack([outcome, 1 - outcome - machine, np.ones(3000), random.normal(size=3000)], axis=1)
    both = prediction_powered.estimate_with_predictions(
        prediction_powered.label_pool(**arguments, predicted=machine, covariates=columns)
    )
    assert 1 <= both.n_covariates <= 2  # one column says nothing new, one is constant, and one is noise
    fitted = np.linalg.lstsq(np.stack([np.ones(3000), machine, outcome], axis=1), values)[0]
    rho = np.corrcoef(values, fitted[1] * machine + fitted[2] * outcome)[0, 1]
    assert alone.saved_share is not None
    assert both.saved_share is not None
    assert both.saved_share == pytest.approx(1 - math.sqrt(1 - rho**2 * 2800 / 3000), abs=0.06)
    assert both.saved_share > alone.saved_share + 0.05
    few = prediction_powered.label_pool(
        values=values,
        weights=(np.arange(3000) < 30).astype(float),
        predicted=machine,
        problems=np.arange(3000),
        covariates=columns,
    )
    assert prediction_powered.estimate_with_predictions(few).n_covariates <= 1


@pytest.mark.fault
@pytest.mark.parametrize("judge", machine_raters.JUDGES)
@pytest.mark.parametrize(
    ("is_chosen", "knows_outcome", "bars"),
    [(False, False, (0.10, 0.12, 0.25)), (True, True, (0.15,) * 3), (False, True, (0.25,) * 3)],
)
def test_powered_intervals_cover_the_truth_under_recorded_probabilities(
    judge: str, *, is_chosen: bool, knows_outcome: bool, bars: tuple[float, ...]
) -> None:
    found = machine_raters.measure_powered(judge, is_chosen=is_chosen, knows_outcome=knows_outcome, worlds=400)
    assert 0.925 <= found.covered <= 0.98
    assert found.auc == pytest.approx(0.8, abs=0.01)
    assert found.shorter >= bars[machine_raters.JUDGES.index(judge)]
