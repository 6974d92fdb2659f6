"""The sequential tests on gold answers: each step follows the formula, and errors are as rare as promised."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stats import sequential_tests
from stats.estimates import Reason
from stats.sequential_tests import SequentialPlan


def one_by_one(right: list[bool], plan: SequentialPlan) -> int | None:
    """Apply the same rule by hand: one running number, one gold answer at a time."""
    gain = {True: math.log(plan.p1 / plan.p0), False: math.log((1 - plan.p1) / (1 - plan.p0))}
    sum_, cusum, is_testing = 0.0, 0.0, True
    for answered, was_right in enumerate(right, start=1):
        if is_testing:
            sum_ += gain[was_right]
            if sum_ >= plan.bound:
                return answered
            is_testing = sum_ > -plan.bound and answered < plan.sprt_ends_after
        else:
            cusum = max(0.0, cusum + gain[was_right])
            if cusum >= plan.cusum_bound:
                return answered
    return None


@settings(max_examples=150, deadline=None)
@given(st.lists(st.booleans(), max_size=160), st.sampled_from([0.95, 0.85, 0.65, 0.5]))
def test_paused_at_equals_the_rule_kept_one_by_one(right: list[bool], p0: float) -> None:
    plan = sequential_tests.make_plan(p0=p0)
    assert sequential_tests.find_pause(right, plan) == one_by_one(right, plan)


@pytest.mark.parametrize("p0", [0.95, 0.85, 0.65])
def test_good_rater_is_rarely_paused_and_a_poor_one_nearly_always(p0: float) -> None:
    plan, random = sequential_tests.make_plan(p0=p0), np.random.default_rng(11)
    paused = [
        float(
            (sequential_tests.run_tests(random.random((4000, 400)) < p, plan) != sequential_tests.NEVER_PAUSED).mean()
        )
        for p in (plan.p0, plan.p1)
    ]
    assert paused[0] <= 0.055  # nominal .05 and one and a half standard errors of 4,000 runs
    assert paused[1] >= 0.95


def test_plan_is_the_published_one() -> None:
    plan = sequential_tests.make_plan(p0=0.85)
    assert plan.bound == pytest.approx(2.944, abs=5e-4)  # five percent in either direction
    assert [plan.p1, plan.sprt_ends_after, plan.cusum_bound] == pytest.approx([0.7, 60, 7.0])


def test_second_test_begins_behind_the_first() -> None:
    """At p0 = 0.65 a right answer subtracts 0.262 and a wrong one adds 0.357. The first test ends with the sixtieth
    gold trace, which is not counted again: from there it takes 20 wrong answers. The test ends earlier for a good
    rater."""
    plan = sequential_tests.make_plan(p0=0.65)
    assert sequential_tests.find_pause([True, False] * 30 + [False] * 30, plan) == 80
    assert sequential_tests.find_pause([True] * 12 + [False] * 30, plan) == 32


def test_expected_false_pauses_grow_with_the_gold() -> None:
    plan = sequential_tests.make_plan(p0=0.85)
    few, many = (sequential_tests.expected_false_pauses(plan=plan, gold=gold) for gold in (40, 400))
    assert 0 < few < many < 6
    assert many > 2  # of a hundred raters


def test_starting_point_is_the_lower_quarter_of_the_raters() -> None:
    raters = [rater for _ in range(40) for rater in range(5)]
    right = [turn < 10 * (rater + 0) or rater == 4 for turn in range(40) for rater in range(5)]
    assert sequential_tests.baseline_accuracy(raters=raters, right=right) == pytest.approx(
        0.25
    )  # of 0, .25, .5, .75, 1


def test_missing_baseline_has_a_reason() -> None:
    assert sequential_tests.baseline_accuracy(raters=[0] * 199, right=[True] * 199) == Reason.FEW_GOLD
    assert sequential_tests.baseline_accuracy(raters=[0, 1, 2, 3] * 50, right=[True] * 200) == Reason.FEW_RATERS


def test_starting_point_reads_on_until_a_fifth_rater_has_answered() -> None:
    raters, right = [0, 1, 2, 3] * 60, [True, True, False, False] * 60
    assert sequential_tests.baseline_accuracy(raters=[*raters, 4, 4], right=[*right, True, False]) == pytest.approx(0.0)
    assert sequential_tests.baseline_accuracy(raters=[4, *raters], right=[True, *right]) == pytest.approx(0.0)
    assert sequential_tests.baseline_accuracy(raters=[4, *raters], right=[False, *([True] * 240)]) == pytest.approx(1.0)


@pytest.mark.parametrize(("p0", "drop"), [(0.1, 0.15), (1.0, 0.15), (0.8, -0.1)])
def test_invalid_plan_is_rejected(p0: float, drop: float) -> None:
    with pytest.raises(ValueError, match="p1"):
        sequential_tests.make_plan(p0=p0, drop=drop)
