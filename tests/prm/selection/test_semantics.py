"""Hazards from scores of every semantics, and their calibration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prm.selection import platt, semantics
from prm.selection.semantics import InvalidScores, Semantics


def test_hazard_is_one_minus_the_score() -> None:
    result = semantics.scores_to_hazards(scores=np.array([0.9, 0.2]), starts=np.array([0]), semantics=Semantics.HAZARD)
    assert result == pytest.approx([0.1, 0.8])


def test_hazard_of_a_value_is_its_relative_fall_and_zero_for_a_rise() -> None:
    scores = np.array([0.6, 0.3, 0.6, 0.0, 0.4, 0.4])
    result = semantics.scores_to_hazards(
        scores=scores, starts=np.array([0, 4]), semantics=Semantics.VALUE, first_value=0.8
    )
    assert result == pytest.approx([0.25, 0.5, 0.0, 1.0, 0.5, 0.0])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_value_hazards_are_probabilities(scores: list[float]) -> None:
    result = semantics.scores_to_hazards(scores=np.array(scores), starts=np.array([0]), semantics=Semantics.VALUE)
    assert ((result >= 0) & (result <= 1)).all()


def test_progress_is_an_order_only() -> None:
    result = semantics.scores_to_hazards(
        scores=np.array([-5.0, 0.0, 9.0]), starts=np.array([0]), semantics=Semantics.PROGRESS
    )
    assert (np.diff(result) < 0).all()


@pytest.mark.parametrize(
    ("scores", "kind"), [([1.2], Semantics.HAZARD), ([-0.1], Semantics.VALUE), ([float("nan")], Semantics.PROGRESS)]
)
def test_scores_out_of_range_are_refused(scores: list[float], kind: Semantics) -> None:
    with pytest.raises(InvalidScores):
        semantics.scores_to_hazards(scores=np.array(scores), starts=np.array([0]), semantics=kind)


def test_platt_recovers_the_true_line() -> None:
    random = np.random.default_rng(0)
    hazards = random.beta(1, 4, 40_000)
    true = 1 / (1 + np.exp(-(-0.7 + 0.5 * platt.logit(hazards))))
    result = platt.fit_calibration(hazards=hazards, is_wrong=random.random(40_000) < true, n_traces=5000)
    assert (result.intercept, result.slope) == pytest.approx((-0.7, 0.5), abs=0.06)
    assert platt.apply_calibration(hazards=hazards, calibration=result) == pytest.approx(true, abs=0.03)


def test_platt_needs_a_hundred_traces_and_both_kinds_of_step() -> None:
    hazards, wrong = np.full(500, 0.3), np.arange(500) % 4 == 0
    for result in (
        platt.fit_calibration(hazards=hazards, is_wrong=wrong, n_traces=99),
        platt.fit_calibration(hazards=hazards, is_wrong=np.zeros(500, dtype=np.bool_), n_traces=400),
    ):
        assert not result.is_fitted
        assert (platt.apply_calibration(hazards=hazards, calibration=result) == hazards).all()


def test_platt_converges_if_hazards_separate_the_labels() -> None:
    hazards = np.where(np.arange(400) % 2 == 0, 0.01, 0.99)
    result = platt.fit_calibration(hazards=hazards, is_wrong=np.arange(400) % 2 == 1, n_traces=200)
    made = platt.apply_calibration(hazards=hazards, calibration=result)
    assert np.isfinite(made).all()
    assert made == pytest.approx(np.where(hazards > 0.5, 201 / 202, 1 / 202), abs=1e-3)
