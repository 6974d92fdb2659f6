"""The three forms of AUC against counting pairs one by one, with problems left out one by one."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prm.evaluation import step_figures
from prm.evaluation.labeled_steps import LabeledSteps
from stats import intervals
from stats.estimates import Estimate, Interval, Reason
from tests.prm.evaluation.benchmarks import make_labeled_steps

Rule = Callable[[LabeledSteps, int, int], bool]


def always(steps: LabeledSteps, wrong: int, right: int) -> bool:
    return True


def same_stratum(steps: LabeledSteps, wrong: int, right: int) -> bool:
    return bool(steps.sources[wrong] == steps.sources[right] and steps.indexes[wrong] == steps.indexes[right])


def matched(steps: LabeledSteps, wrong: int, right: int) -> bool:
    apart = abs(steps.log_characters[wrong] - steps.log_characters[right])
    return same_stratum(steps, wrong, right) and bool(apart <= 0.1)


def one_by_one(steps: LabeledSteps, rule: Rule, *, without: int = -1) -> float | None:
    in_order = pairs = 0.0
    for wrong in np.flatnonzero(steps.is_wrong & (steps.problems != without)):
        for right in np.flatnonzero(~steps.is_wrong & (steps.problems != without)):
            if rule(steps, int(wrong), int(right)):
                pairs += 1
                difference = steps.p_wrong[wrong] - steps.p_wrong[right]
                in_order += float(difference > 0) + 0.5 * float(difference == 0)
    return in_order / pairs if pairs else None


FORMS: list[tuple[Callable[[LabeledSteps], Estimate], Rule]] = [
    (step_figures.auc, always),
    (step_figures.risk_set_auc, same_stratum),
    (step_figures.length_matched_auc, matched),
]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(FORMS))
def test_value_and_interval_equal_counting_one_by_one(
    seed: int, form: tuple[Callable[[LabeledSteps], Estimate], Rule]
) -> None:
    measure, rule = form
    steps = make_labeled_steps(seed=seed)
    result, expected = measure(steps), one_by_one(steps, rule)
    if expected is None:
        assert result.reason == Reason.NO_CASES
        return
    assert result.value == pytest.approx(expected)
    without = [one_by_one(steps, rule, without=problem) for problem in range(steps.n_problems)]
    if any(value is None for value in without) or result.counts.problems < steps.n_problems:
        return
    interval = intervals.jackknife_interval(
        value=expected,
        without_one=np.array(without, dtype=np.float64),
        copies=np.ones(len(without), dtype=np.int64),
        floor=0.0,
    )
    if isinstance(interval, Interval):
        assert result.interval is not None
        assert (result.interval.low, result.interval.high) == pytest.approx((interval.low, interval.high))


def test_perfect_order_is_one_and_its_reverse_zero() -> None:
    steps = make_labeled_steps()
    perfect = steps.with_scores(steps.is_wrong.astype(float))
    for measure, _ in FORMS:
        assert measure(perfect).value == 1.0
        assert measure(perfect.with_scores(1 - perfect.p_wrong)).value == 0.0


def test_block_size_does_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = make_labeled_steps(n=300)
    whole = step_figures.length_matched_auc(steps)
    monkeypatch.setattr(step_figures, "_CELLS", 50)
    assert step_figures.length_matched_auc(steps) == whole


def test_position_scores_on_the_plain_auc_and_not_on_the_risk_set() -> None:
    """The error is the last labeled step, so the index by itself looks informative."""
    random = np.random.default_rng(1)
    lengths, n = random.integers(1, 9, 300), 300
    index = np.concatenate([np.arange(length) for length in lengths])
    trace = np.repeat(np.arange(n), lengths)
    steps = LabeledSteps(
        p_wrong=index / 10,
        is_wrong=index == (lengths - 1)[trace],
        log_characters=np.zeros(len(index)),
        indexes=index,
        traces=trace,
        problems=trace,
        sources=np.zeros(len(index), dtype=np.int64),
    )
    assert (step_figures.auc(steps).value or 0) > 0.65
    assert step_figures.risk_set_auc(steps).value == 0.5


def test_length_only_is_the_auc_of_log_characters() -> None:
    steps = make_labeled_steps()
    assert step_figures.length_only_auc(steps) == step_figures.risk_set_auc(steps.with_scores(steps.log_characters))
    assert step_figures.length_only_matched_auc(steps) == step_figures.length_matched_auc(
        steps.with_scores(steps.log_characters)
    )


def test_no_wrong_step_is_reported_as_no_cases() -> None:
    steps = make_labeled_steps()
    right = LabeledSteps(
        steps.p_wrong,
        np.zeros(60, dtype=np.bool_),
        steps.log_characters,
        steps.indexes,
        steps.traces,
        steps.problems,
        steps.sources,
    )
    for measure, _ in FORMS:
        assert measure(right).reason == Reason.NO_CASES


def test_no_step_is_reported_as_no_cases() -> None:
    nothing = make_labeled_steps().take(np.zeros(0, dtype=np.int64))
    for figure in (step_figures.auc, step_figures.risk_set_auc, step_figures.length_matched_auc):
        assert figure(nothing).reason == Reason.NO_CASES


def test_interval_of_a_difference_covers_it_and_excludes_zero_for_a_much_better_prm() -> None:
    steps = make_labeled_steps(n=400, problems=40)
    better = steps.with_scores(steps.is_wrong * 0.5 + steps.p_wrong * 0.1)
    result = step_figures.length_matched_difference(better, steps.p_wrong)
    assert isinstance(result.interval, Interval)
    assert result.interval.low > 0
    gap = (step_figures.length_matched_auc(better).value or 0) - (step_figures.length_matched_auc(steps).value or 0)
    assert result.interval.low < gap < result.interval.high
    assert result.value == pytest.approx(gap)
    assert result.n_problems == 40
    assert result.n_pairs == step_figures.length_matched_difference(steps, steps.p_wrong).n_pairs > 100
    assert step_figures.length_matched_difference(steps, steps.p_wrong).interval == Reason.NO_SPREAD
