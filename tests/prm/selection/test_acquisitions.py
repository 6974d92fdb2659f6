"""First-error probabilities, costs and acquisition scores against their formulas."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prm.selection import acquisitions
from prm.selection.acquisitions import (
    InvalidAcquisitionScores,
    Pool,
    ReadingRates,
    UnknownAcquisition,
    first_error_probabilities,
    no_error_probabilities,
)
from tests.prm.selection.pools import make_one_trace_pool, make_pool

HAZARDS = st.lists(st.floats(0, 1), min_size=1, max_size=12)
READING = ReadingRates(opening=5, step=1, word=0.5)


def places(hazards: list[float]) -> list[float]:
    """Return P(E = 0), … P(E = T-1), P(none)."""
    probabilities, still_right = [], 1.0
    for hazard in hazards:
        probabilities.append(still_right * hazard)
        still_right *= 1 - hazard
    return [*probabilities, still_right]


@given(HAZARDS)
def test_first_error_and_none_are_a_distribution(hazards: list[float]) -> None:
    trace = make_one_trace_pool(hazards)
    result = [*first_error_probabilities(trace), *no_error_probabilities(trace)]
    assert result == pytest.approx(places(hazards), abs=1e-8)


@given(HAZARDS)
def test_entropy_by_steps_is_the_entropy_of_the_places(hazards: list[float]) -> None:
    expected = -sum(p * math.log(p) for p in places(hazards) if p > 0)
    assert float(acquisitions.first_error_entropy(make_one_trace_pool(hazards))[0]) == pytest.approx(expected, abs=1e-7)


def test_traces_do_not_leak_into_each_other() -> None:
    both = make_pool(n=12)
    entropy = acquisitions.first_error_entropy(both)
    for trace, start in enumerate(both.starts):
        alone = make_one_trace_pool(both.hazards[start : start + both.lengths[trace]].tolist())
        assert float(acquisitions.first_error_entropy(alone)[0]) == pytest.approx(float(entropy[trace]))


def test_cost_weights_later_steps_by_the_probability_of_reaching_them() -> None:
    assert float(acquisitions.expected_seconds(make_one_trace_pool([0.5, 0.5, 0.0]), READING)[0]) == pytest.approx(
        5 + 6 + 3 + 1.5
    )


def test_cost_is_fitted_from_measured_time() -> None:
    random = np.random.default_rng(0)
    steps, words = random.integers(1, 20, 300), random.integers(20, 500, 300)
    seconds = np.asarray(7 + 1.5 * steps + 0.2 * words + random.normal(0, 1, 300), dtype=np.float64)
    seconds[:10] += 900  # interruptions
    result = acquisitions.fit_reading_rates(seconds=seconds, steps_read=steps, words_read=words)
    assert (result.opening, result.step, result.word) == pytest.approx((7, 1.5, 0.2), abs=0.5)


def test_cost_never_gets_a_negative_rate() -> None:
    steps = np.arange(1, 50)
    result = acquisitions.fit_reading_rates(
        seconds=np.linspace(99.0, 51.0, 49), steps_read=steps, words_read=steps * 7 % 13
    )
    assert min(result.opening, result.step, result.word) >= 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("max_step_entropy", math.log(2)),
        ("margin", 1 - (0.5 - 0.4)),
        ("convincing_wrong_answer", 0.4),
        ("longest", math.log(51)),
        ("random", 1.0),
        ("disagreement", 1e-9),
    ],
)
def test_acquisition_equals_its_formula(name: str, expected: float) -> None:
    assert float(acquisitions.acquisition_scores(name, make_one_trace_pool([0.5, 0.2]), READING)[0]) == pytest.approx(
        expected
    )


def test_convincing_wrong_answers_are_wrong_answers() -> None:
    both = make_pool(n=40)
    result = acquisitions.acquisition_scores("convincing_wrong_answer", both, READING)
    assert (result[~both.is_answer_wrong] < 1e-6).all()
    assert result[both.is_answer_wrong].max() > 0.1


def test_default_puts_wrong_answers_first_and_then_the_most_uncertain_traces() -> None:
    pool = make_pool(n=60)
    scores = acquisitions.acquisition_scores(acquisitions.DEFAULT, pool, READING)
    wrong = pool.is_answer_wrong
    assert scores[wrong].min() >= 10 * scores[~wrong].max()
    assert (np.argsort(scores[wrong]) == np.argsort(no_error_probabilities(pool)[wrong])).all()
    assert (np.argsort(scores[~wrong]) == np.argsort(acquisitions.first_error_entropy(pool)[~wrong])).all()
    assert acquisitions.outcome_strata(pool).tolist() == (pool.is_answer_wrong | pool.is_answer_right).tolist()


@pytest.mark.parametrize("n", [1, 30])
def test_features_are_finite_and_standardized(n: int) -> None:
    features = acquisitions.spread_features(make_pool(n=n))
    assert features.shape == (n, 6)
    assert np.isfinite(features).all()
    assert np.abs(features).max(initial=0) <= 3
    if n == 30:
        assert features.std(axis=0).min() > 0.5  # outliers are clipped


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted(acquisitions.ACQUISITIONS)), st.integers(0, 1000))
def test_every_acquisition_scores_every_trace_above_zero(name: str, seed: int) -> None:
    result = acquisitions.acquisition_scores(name, make_pool(n=20, seed=seed), READING)
    assert result.shape == (20,)
    assert (result > 0).all()


def by_number(pool: Pool, reading: ReadingRates) -> np.ndarray:
    return np.arange(pool.n) + 1.0


def wrong_shape(pool: Pool, reading: ReadingRates) -> np.ndarray:
    return np.ones(pool.n + 1)


def test_custom_acquisition_is_found_by_its_path() -> None:
    assert acquisitions.acquisition_scores(f"{__name__}:by_number", make_pool(n=3), READING).tolist() == [1, 2, 3]


def test_scores_of_a_custom_acquisition_are_checked() -> None:
    with pytest.raises(InvalidAcquisitionScores):
        acquisitions.acquisition_scores(f"{__name__}:wrong_shape", make_pool(n=3), READING)


@pytest.mark.parametrize("name", ["entropies", "nowhere:function", "prm.selection.draws:nothing", ":"])
def test_unknown_acquisition_is_refused(name: str) -> None:
    with pytest.raises(UnknownAcquisition):
        acquisitions.find_acquisition(name)


def test_pool_refuses_invalid_hazards_and_empty_traces() -> None:
    with pytest.raises(ValueError, match="probabilities"):
        make_one_trace_pool([1.5])
    with pytest.raises(ValueError, match="one step"):
        make_one_trace_pool([])
