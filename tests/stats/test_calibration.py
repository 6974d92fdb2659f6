"""Calibration on gold: the temperature, the calibration error, and a threshold that keeps its promise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from stats import calibration, first_error_reports
from stats.estimates import Reason


def over_confident(*, n: int, sharpness: float) -> tuple[first_error_reports.FirstErrorPlaces, np.ndarray, np.ndarray]:
    """Draw traces whose truth follows p, with a posterior that is p to the power of `sharpness`."""
    random = np.random.default_rng(8)
    places = first_error_reports.enumerate_places(np.full(n, 4))
    p = random.dirichlet(np.ones(5), n)
    truth = np.array([random.choice(5, p=row) for row in p])
    sharp = p**sharpness
    return places, (sharp / sharp.sum(axis=1, keepdims=True)).ravel(), places.steps == truth[places.traces]


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 4.0])
def test_temperature_undoes_over_confidence(sharpness: float) -> None:
    places, posterior, is_right = over_confident(n=3000, sharpness=sharpness)
    found = calibration.fit_temperature(posterior=posterior, places=places, is_accepted=is_right)
    assert found.value == pytest.approx(sharpness, rel=0.1)
    cooled = calibration.apply_temperature(posterior=posterior, places=places, temperature=found)
    _, sure = first_error_reports.most_likely_places(cooled, places)
    at_best = is_right[np.flatnonzero(cooled >= sure[places.traces])]
    assert calibration.expected_calibration_error(confidences=sure, is_right=at_best) < 0.05


def test_temperature_needs_a_hundred_gold_traces() -> None:
    places, posterior, is_right = over_confident(n=99, sharpness=4)
    found = calibration.fit_temperature(posterior=posterior, places=places, is_accepted=is_right)
    assert (found.value, found.n_gold, found.reason) == (1.0, 99, Reason.FEW_GOLD)


def test_temperature_reads_gold_only() -> None:
    places, posterior, is_right = over_confident(n=400, sharpness=4)
    is_gold = places.traces < 300
    some = calibration.fit_temperature(posterior=posterior, places=places, is_accepted=is_right & is_gold)
    spoiled = np.where(is_gold, posterior, 0.2)
    assert calibration.fit_temperature(posterior=spoiled, places=places, is_accepted=is_right & is_gold) == some


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50), st.integers(1, 20))
def test_expected_error_is_the_gap_when_all_are_right(confidences: list[float], bins: int) -> None:
    found = calibration.expected_calibration_error(
        confidences=np.array(confidences), is_right=np.ones(len(confidences), dtype=np.bool_), bins=bins
    )
    assert found == pytest.approx(1 - np.mean(confidences))


def test_expected_error_adds_up_bin_by_bin() -> None:
    """Two bins of two: confidence 0.9 with half right, 0.3 with all right. Errors of opposite sign do not cancel."""
    found = calibration.expected_calibration_error(
        confidences=np.array([0.9, 0.9, 0.3, 0.3]), is_right=np.array([True, False, True, True]), bins=2
    )
    assert found == pytest.approx((2 * 0.4 + 2 * 0.7) / 4)


def test_expected_error_of_nothing_is_nan() -> None:
    assert np.isnan(
        calibration.expected_calibration_error(confidences=np.zeros(0), is_right=np.zeros(0, dtype=np.bool_))
    )


def test_threshold_takes_everything_when_nearly_all_is_right() -> None:
    confidences = np.linspace(1, 0.5, 400)
    found = calibration.choose_acceptance_threshold(confidences=confidences, is_right=np.arange(400) % 50 != 0)
    assert (found.threshold, found.n_accepted) == (0.5, 400)
    assert found.lower_bound is not None
    assert found.lower_bound >= 0.9


def test_threshold_goes_by_the_one_sided_lower_bound() -> None:
    """92 of 100 right do not support a promise of .90; 95 of 100 do, by a bound that fails one time in ten."""
    sure = np.full(100, 0.99)
    assert (
        calibration.choose_acceptance_threshold(confidences=sure, is_right=np.arange(100) >= 8).reason
        == Reason.BELOW_PROMISE
    )
    kept = calibration.choose_acceptance_threshold(confidences=sure, is_right=np.arange(100) >= 5)
    assert kept.lower_bound == pytest.approx(stats.beta.ppf(0.1, 95, 6))


def test_threshold_stops_where_the_promise_breaks() -> None:
    confidences = np.linspace(1, 0, 600)
    is_right = np.where(np.arange(600) < 300, np.arange(600) % 40 != 0, np.arange(600) % 2 == 0)
    found = calibration.choose_acceptance_threshold(confidences=confidences, is_right=is_right)
    assert 250 <= found.n_accepted <= 400
    assert is_right[: found.n_accepted].mean() >= 0.9


def test_threshold_looks_no_further_once_the_promise_broke() -> None:
    """The most confident quarter has twenty wrong answers, the others none. In total, 95 % are right, but the promise
    already fails for the first quarter."""
    found = calibration.choose_acceptance_threshold(confidences=np.linspace(1, 0.5, 400), is_right=np.arange(400) >= 20)
    assert (found.threshold, found.reason) == (None, Reason.BELOW_PROMISE)


def test_threshold_keeps_equal_confidence_together() -> None:
    confidences = np.where(np.arange(300) < 150, 0.9, 0.6)
    found = calibration.choose_acceptance_threshold(confidences=confidences, is_right=np.arange(300) < 150)
    assert (found.threshold, found.n_accepted) == (0.9, 150)


def test_missing_threshold_has_a_reason() -> None:
    few = calibration.choose_acceptance_threshold(confidences=np.ones(49), is_right=np.ones(49, dtype=np.bool_))
    bad = calibration.choose_acceptance_threshold(confidences=np.ones(200), is_right=np.arange(200) % 2 == 0)
    assert (few.threshold, few.reason) == (None, Reason.FEW_GOLD)
    assert (bad.threshold, bad.reason) == (None, Reason.BELOW_PROMISE)
