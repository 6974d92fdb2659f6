"""Estimates: intervals, reasons for missing ones, and coverage."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stats import agreement, estimation, rating_patterns
from stats.estimates import Estimate, Interval, Reason, UnitCounts
from stats.rating_patterns import RatingPatterns
from tests.stats.strategies import HOLE, matrices


def rated(*, problems: int, steps: int = 6, accuracy: float = 0.85, seed: int = 0) -> RatingPatterns:
    """Draw the ratings of two raters who judge each step with some accuracy, on problems of differing difficulty."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, 3, (problems, steps))
    skill = np.clip(random.normal(accuracy, 0.1, (problems, 1)), 0, 1)
    said = [np.where(random.random(truth.shape) < skill, truth, random.integers(0, 3, truth.shape)) for _ in range(2)]
    units = np.tile(np.arange(truth.size), 2)
    return rating_patterns.count_patterns(
        units=units, labels=np.concatenate([s.ravel() for s in said]), problem_of_unit=np.arange(truth.size) // steps
    )


def test_both_intervals_contain_the_value() -> None:
    for name, estimate in agreement.estimate_step_statistics(rated(problems=40)).items():
        assert estimate.value is not None
        for interval in (estimate.interval, estimate.bootstrap):
            assert interval is not None, name
            assert interval.low < estimate.value < interval.high


@pytest.mark.parametrize(("problems", "interval", "bootstrap"), [(4, False, False), (5, True, False), (30, True, True)])
def test_number_of_problems_decides_which_intervals_there_are(problems: int, interval: bool, bootstrap: bool) -> None:
    estimate = agreement.estimate_step_statistics(rated(problems=problems))["alpha_nominal"]
    assert estimate.value is not None
    assert (estimate.interval is not None, estimate.bootstrap is not None) == (interval, bootstrap)
    assert estimate.interval_reason == (None if interval else Reason.FEW_PROBLEMS)
    assert estimate.bootstrap_reason == (None if bootstrap else Reason.FEW_FOR_BOOTSTRAP)
    assert estimate.counts.problems == problems


def test_perfect_agreement_has_no_interval_but_a_reason() -> None:
    estimate = agreement.estimate_step_statistics(rated(problems=12, accuracy=9.0))["alpha_nominal"]
    assert estimate.value == 1.0
    assert (estimate.interval, estimate.interval_reason) == (None, Reason.NO_SPREAD)


def test_value_that_depends_on_one_problem_has_no_interval_but_a_reason() -> None:
    rows = [(problem, (0, 0, 2), 5) for problem in range(9)] + [(9, (1, 0, 1), 1), (9, (2, 0, 0), 1)]
    estimate = agreement.estimate_step_statistics(rating_patterns.patterns_from_rows(rows))["alpha_nominal"]
    assert estimate.value is not None
    assert estimate.interval_reason == Reason.RESTS_ON_ONE


def test_one_disagreement_is_measured_on_the_plain_scale() -> None:
    """Without the one problem that disagrees the value is 1, which the Fisher scale cannot represent."""
    rows = [(problem, (2, 0, 0), 3) for problem in range(9)] + [(problem, (0, 0, 2), 3) for problem in range(9)]
    estimate = agreement.estimate_step_statistics(rating_patterns.patterns_from_rows([*rows, (9, (1, 0, 1), 1)]))[
        "alpha_nominal"
    ]
    assert estimate.value is not None
    assert estimate.interval is not None
    assert estimate.interval.low < estimate.value < estimate.interval.high <= 1


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_order_and_numbering_of_problems_changes_no_interval(seed: int) -> None:
    made = rated(problems=9, seed=seed)
    shuffled = np.random.default_rng(seed).permutation(9)
    other = RatingPatterns(made.values, made.counts, made.units, shuffled[made.problems], made.copies)
    for name, estimate in agreement.estimate_step_statistics(made).items():
        assert estimate.interval is not None
        twin = agreement.estimate_step_statistics(other)[name].interval
        assert twin is not None
        assert (estimate.interval.low, estimate.interval.high) == pytest.approx((twin.low, twin.high))


@settings(max_examples=20, deadline=None)
@given(matrices())
def test_merged_units_give_the_same_estimates(matrix: npt.NDArray[np.int64]) -> None:
    rated, units = matrix != HOLE, np.broadcast_to(np.arange(matrix.shape[1]), matrix.shape)
    labels, each = matrix[rated], np.arange(matrix.shape[1])
    once = agreement.estimate_step_statistics(rating_patterns.count_patterns(units=units[rated], labels=labels))
    singly = agreement.estimate_step_statistics(
        rating_patterns.count_patterns(units=units[rated], labels=labels, problem_of_unit=each)
    )
    for name, estimate in once.items():
        other = singly[name]
        assert (estimate.counts, estimate.reason) == (other.counts, other.reason)
        assert estimate.interval_reason == other.interval_reason
        if estimate.interval is not None and other.interval is not None:
            found = (estimate.interval.low, estimate.interval.high)
            assert found == pytest.approx((other.interval.low, other.interval.high), abs=1e-9)


def test_bootstrap_with_undefined_resamples_has_a_reason() -> None:
    """The value is defined. Without the one problem that varies, which a third of all draws leave out, it is
    undefined."""
    rows = [(problem, (0, 0, 2), 5) for problem in range(39)] + [(39, (1, 0, 1), 1), (39, (2, 0, 0), 1)]
    estimate = agreement.estimate_step_statistics(rating_patterns.patterns_from_rows(rows))["alpha_nominal"]
    assert estimate.value is not None
    assert (estimate.bootstrap, estimate.bootstrap_reason) == (None, Reason.DRAWS_UNDEFINED)


def test_bootstrap_is_the_same_at_every_call() -> None:
    made = rated(problems=35)
    assert agreement.estimate_step_statistics(made) == agreement.estimate_step_statistics(made)


@pytest.mark.fault
def test_random_raters_are_covered_at_zero() -> None:
    """Nominal coverage is 95 %; at 200 seeds 90 % is five standard errors below."""
    covered = 0
    for seed in range(200):
        estimate = agreement.estimate_step_statistics(rated(problems=12, accuracy=-9.0, seed=seed))["alpha_nominal"]
        assert estimate.interval is not None
        covered += estimate.interval.low <= 0 <= estimate.interval.high
    assert covered >= 180


@pytest.mark.parametrize(
    ("value", "reason"), [(None, None), (0.5, Reason.NO_PAIRS), (float("nan"), None), (float("inf"), None)]
)
def test_estimate_needs_a_number_or_a_reason(value: float | None, reason: Reason | None) -> None:
    with pytest.raises(ValueError, match="estimate"):
        Estimate(
            value=value,
            counts=UnitCounts(1, 1, 1),
            reason=reason,
            interval=Interval(0, 1, 0.95, "some"),
            bootstrap_reason=Reason.FEW_FOR_BOOTSTRAP,
        )


def test_missing_share_or_interval_has_a_reason() -> None:
    assert estimation.estimate_share_by_problem({}).reason == Reason.NO_CASES
    few = estimation.estimate_share_by_problem({1: (1, 2), 2: (0, 2)})
    assert (few.value, few.interval_reason) == (0.25, Reason.FEW_PROBLEMS)
    assert estimation.estimate_share_by_problem(dict.fromkeys(range(8), (0, 3))).interval_reason == Reason.NO_SPREAD


def test_problem_without_a_case_is_none() -> None:
    """Five problems have cases, so there is an interval; the sixth is neither counted nor left out in turn."""
    some = {problem: (problem % 2, 3) for problem in range(5)}
    assert estimation.estimate_share_by_problem(some | {5: (0, 0)}) == estimation.estimate_share_by_problem(some)
    assert estimation.estimate_share_by_problem(some).counts.problems == 5


@pytest.mark.parametrize("per_problem", [1, 10])
def test_interval_covers_clustered_cases(per_problem: int) -> None:
    """Problems differ in how often they are missed; a nominal 95 % interval contains the mean in about 95 % of
    samples."""
    random, held, runs = np.random.default_rng(5), 0, 300
    for _ in range(runs):
        hard = random.beta(1, 2, size=30)
        wrong = random.binomial(per_problem, hard)
        found = estimation.estimate_share_by_problem({n: (int(each), per_problem) for n, each in enumerate(wrong)})
        held += found.interval is not None and found.interval.low <= 1 / 3 <= found.interval.high
    assert 0.91 <= held / runs <= 0.99
