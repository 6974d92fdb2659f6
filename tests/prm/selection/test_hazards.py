"""Hazards from scores of every semantics, and their calibration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prm.selection import hazards
from prm.selection.hazards import UNKNOWN_VALUE, InvalidScores
from stats.arrays import Floats

CONTEXT = float("nan")


def compute_hazards(scores: list[float], lengths: list[int], semantics: str, **calibration: float) -> Floats:
    return hazards.raw_hazards(np.array(scores), np.array(lengths), semantics, calibration)


def test_hazard_is_one_minus_the_score() -> None:
    assert compute_hazards([0.9, 0.2], [2], "hazard") == pytest.approx([0.1, 0.8])


def test_hazard_of_a_value_is_its_relative_fall_and_zero_for_a_rise() -> None:
    result = compute_hazards([0.6, 0.3, 0.6, 0.0, 0.4, 0.4], [4, 2], "value", first_value=0.8)
    assert result == pytest.approx([0.25, 0.5, 0.0, 1.0, 0.5, 0.0])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_value_hazards_are_probabilities(scores: list[float]) -> None:
    result = compute_hazards(scores, [len(scores), 0], "value")
    assert ((result >= 0) & (result <= 1)).all()


def test_progress_is_an_order_only() -> None:
    assert (np.diff(compute_hazards([-5.0, 0.0, 9.0], [3], "progress")) < 0).all()


@pytest.mark.parametrize(("score", "semantics"), [(1.2, "hazard"), (-0.1, "value"), (float("inf"), "progress")])
def test_scores_out_of_range_are_refused(score: float, semantics: str) -> None:
    with pytest.raises(InvalidScores):
        compute_hazards([score], [1], semantics)


def test_value_before_the_first_step_is_the_mean_after_the_first_step() -> None:
    scores, lengths = np.array([0.9, 0.1, CONTEXT, 0.5, 0.4]), np.array([2, 2, 1])
    assert hazards.estimate_first_value(scores, lengths, "value") == pytest.approx(0.6)
    assert hazards.estimate_first_value(scores, lengths, "hazard") == UNKNOWN_VALUE
    assert hazards.estimate_first_value(np.zeros(0), np.zeros(0, dtype=np.int64), "value") == UNKNOWN_VALUE


def test_fall_over_context_counts_once_and_context_is_never_wrong() -> None:
    result = compute_hazards([CONTEXT, 0.4, CONTEXT, 0.2, 0.6], [4, 1], "value", first_value=0.8)
    assert result == pytest.approx([0.0, 0.5, 0.0, 0.5, 0.25])


def test_calibration_does_not_change_context() -> None:
    line = {"intercept": 1.0, "slope": 1.0, "n": 100, "is_fitted": True}
    calibrated = hazards.calibrated_hazards(np.array([CONTEXT, 0.5]), np.array([2]), "hazard", line)
    assert calibrated == pytest.approx([0.0, 1 / (1 + np.exp(-1))])


def test_platt_recovers_the_true_line() -> None:
    random = np.random.default_rng(0)
    raw = random.beta(1, 4, 40_000)
    true = 1 / (1 + np.exp(-(-0.7 + 0.5 * hazards.logit(raw))))
    result = hazards.fit_calibration(hazards=raw, is_wrong=random.random(40_000) < true, n_traces=5000)
    assert (result["intercept"], result["slope"]) == pytest.approx((-0.7, 0.5), abs=0.06)
    assert hazards.apply_calibration(raw, result) == pytest.approx(true, abs=0.03)


def test_platt_needs_a_hundred_traces_and_both_kinds_of_step() -> None:
    raw, wrong = np.full(500, 0.3), np.arange(500) % 4 == 0
    for result in (
        hazards.fit_calibration(hazards=raw, is_wrong=wrong, n_traces=99),
        hazards.fit_calibration(hazards=raw, is_wrong=np.zeros(500, dtype=np.bool_), n_traces=400),
    ):
        assert not result["is_fitted"]
        assert (hazards.apply_calibration(raw, result) == raw).all()


def test_platt_converges_if_hazards_separate_the_labels() -> None:
    raw = np.where(np.arange(400) % 2 == 0, 0.01, 0.99)
    result = hazards.fit_calibration(hazards=raw, is_wrong=np.arange(400) % 2 == 1, n_traces=200)
    made = hazards.apply_calibration(raw, result)
    assert np.isfinite(made).all()
    assert made == pytest.approx(np.where(raw > 0.5, 201 / 202, 1 / 202), abs=1e-3)
