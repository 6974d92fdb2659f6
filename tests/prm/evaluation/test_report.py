"""The report has every figure: ProcessBench's F1 for first errors, error shares, calibration, and best of N."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prm.evaluation import report, step_figures
from prm.evaluation.labeled_steps import NO_ERROR, JudgedTraces, LabeledSteps
from stats import calibration
from stats.arrays import Floats, Ints
from stats.estimates import Reason
from tests.prm.evaluation.benchmarks import make_labeled_steps


def make_random_traces(p_wrong: Floats | None = None, *, n: int = 60, seed: int = 0) -> JudgedTraces:
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 7, n)
    steps = int(lengths.sum())
    truth = np.where(random.random(n) < 0.5, NO_ERROR, random.integers(0, lengths))
    return JudgedTraces(
        p_wrong=random.random(steps) if p_wrong is None else p_wrong,
        characters=random.integers(20, 60, steps),
        lengths=lengths,
        truth=truth,
        problems=random.integers(0, 30, n),
        sources=np.zeros(n, dtype=np.int64),
    )


def true_scores(traces: JudgedTraces) -> Floats:
    starts = np.cumsum(traces.lengths) - traces.lengths
    p_wrong = np.zeros(int(traces.lengths.sum()))
    p_wrong[(starts + traces.truth)[traces.truth != NO_ERROR]] = 1.0
    return p_wrong


def test_perfect_scores_have_perfect_figures() -> None:
    traces = make_random_traces(true_scores(make_random_traces()))
    for result in (report.report_on_traces(traces, threshold=0.5), report.report_across_folds(traces)):
        values = {name: estimate.value for name, estimate in result.items()}
        assert values["f1"] == values["auc"] == values["risk_set_auc"] == values["risk_set_auc_length_matched"] == 1.0
        assert values["ece"] == values["over_credit"] == values["over_blame"] == 0.0


def test_keep_selects_whole_traces() -> None:
    traces = make_random_traces()
    some = traces.keep(np.arange(60) % 3 == 0)
    assert some.lengths.sum() == len(some.p_wrong)
    assert report.count_judged(some)["traces"] == 20


def test_calibration_error_equals_the_plain_one_and_has_an_interval() -> None:
    steps = make_labeled_steps(n=400, problems=40, scores=30)
    result = step_figures.expected_calibration_error(steps)
    expected = calibration.expected_calibration_error(confidences=1 - steps.p_wrong, is_right=~steps.is_wrong)
    assert result.value == pytest.approx(expected)
    assert result.interval is not None
    assert result.interval.low <= expected <= result.interval.high


LENGTHS = np.array([3, 2, 4])
P_WRONG = np.array([0.1, 0.6, 0.9, 0.2, 0.1, 0.4, 0.5, 0.1, 0.7])


def make_judged(p_wrong: Floats, lengths: Ints, truth: list[int]) -> JudgedTraces:
    n = len(lengths)
    sources = np.zeros(n, dtype=np.int64)
    return JudgedTraces(p_wrong, np.arange(len(p_wrong)) + 1, lengths, np.array(truth), np.arange(n), sources)


def test_first_error_is_the_first_step_at_the_threshold() -> None:
    assert report.predict_first_errors(p_wrong=P_WRONG, lengths=LENGTHS, threshold=0.5).tolist() == [
        1,
        NO_ERROR,
        1,
    ]
    assert report.predict_first_errors(p_wrong=P_WRONG, lengths=LENGTHS, threshold=0.95).tolist() == [NO_ERROR] * 3


def test_published_scores_of_a_real_model_give_first_error_one() -> None:
    """P(right) of four steps by Qwen2.5-Math-PRM; the second step is wrong."""
    p_right = np.array([0.9995, 0.1813, 0.9746, 0.9995])
    result = report.predict_first_errors(p_wrong=1 - p_right, lengths=np.array([4]), threshold=0.5)
    assert result.tolist() == [1]


def test_f1_is_the_harmonic_mean_of_both_accuracies() -> None:
    judged = make_judged(P_WRONG, LENGTHS, [1, NO_ERROR, 2])
    result = report.evaluate_processbench(judged, threshold=0.5)
    assert (result["accuracy_erroneous"].value, result["accuracy_correct"].value) == (0.5, 1.0)
    assert result["f1"].value == pytest.approx(2 / 3)
    assert result["f1"].interval_reason == Reason.FEW_PROBLEMS


def test_f1_is_zero_if_no_error_is_found() -> None:
    judged = make_judged(np.zeros(9), LENGTHS, [1, NO_ERROR, 2])
    result = report.evaluate_processbench(judged, threshold=0.5)
    assert (result["accuracy_erroneous"].value, result["f1"].value) == (0.0, 0.0)


def test_no_erroneous_trace_is_reported_as_no_cases() -> None:
    judged = make_judged(P_WRONG, LENGTHS, [NO_ERROR] * 3)
    result = report.evaluate_processbench(judged, threshold=0.5)
    assert result["accuracy_erroneous"].reason == result["f1"].reason == Reason.NO_CASES
    assert result["accuracy_correct"].value == pytest.approx(1 / 3)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 1000))
def test_best_threshold_is_not_beaten_by_any_other(seed: int) -> None:
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 6, 30)
    p_wrong = random.integers(0, 20, int(lengths.sum())) / 20
    truth = np.where(random.random(30) < 0.5, NO_ERROR, random.integers(0, lengths))
    judged = make_judged(p_wrong, lengths, truth.tolist())

    def f1(threshold: float) -> float:
        return report.evaluate_processbench(judged, threshold=threshold)["f1"].value or 0.0

    best = report.find_best_threshold(judged)
    assert f1(best) == pytest.approx(max(f1(t) for t in np.unique(p_wrong)))


def test_steps_after_the_first_error_carry_no_label() -> None:
    judged = make_judged(P_WRONG, LENGTHS, [1, NO_ERROR, 0])
    steps = replace(judged, problems=np.array([4, 5, 4])).labeled_steps()
    assert steps.p_wrong.tolist() == [0.1, 0.6, 0.2, 0.1, 0.4]
    assert steps.is_wrong.tolist() == [False, True, False, False, True]
    assert (steps.indexes.tolist(), steps.problems.tolist()) == ([0, 1, 0, 1, 0], [4, 4, 5, 5, 4])


def test_labeled_steps_refuse_nan_scores() -> None:
    with pytest.raises(ValueError, match="finite"):
        make_labeled_steps().with_scores(np.full(60, np.nan))


def test_shares_equal_counting() -> None:
    steps = make_labeled_steps(scores=20)
    wrong, p = steps.is_wrong, steps.p_wrong
    assert step_figures.missed_error_share(steps).value == pytest.approx((p[wrong] < 0.5).mean())
    assert step_figures.false_alarm_share(steps).value == pytest.approx((p[~wrong] >= 0.5).mean())
    assert step_figures.false_confidence_share(steps).value == pytest.approx((1 - p[wrong] >= 0.9).mean())
    assert step_figures.missed_error_share(steps).interval is not None


def test_share_without_a_wrong_step_is_reported_as_no_cases() -> None:
    steps = make_labeled_steps()
    right = LabeledSteps(**{**vars(steps), "is_wrong": np.zeros(60, dtype=np.bool_)})
    assert step_figures.false_confidence_share(right).reason == Reason.NO_CASES


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=7), st.data())
def test_best_of_n_equals_enumerating_all_subsets(candidates: list[tuple[int, bool]], data: st.DataObject) -> None:
    n = data.draw(st.integers(1, len(candidates)))
    chosen = possible = 0.0
    subsets = list(itertools.combinations(candidates, n))
    for subset in subsets:
        best = [right for score, right in subset if score == max(score for score, _ in subset)]
        chosen += sum(best) / len(best) / len(subsets)
        possible += any(right for _, right in subset) / len(subsets)
    [point] = report.best_of_n_curve(
        scores=np.array([score for score, _ in candidates], dtype=np.float64),
        is_right=np.array([right for _, right in candidates]),
        problems=np.zeros(len(candidates), dtype=np.int64),
        sizes=[n],
    )
    assert (point["chosen"], point["possible"]) == pytest.approx((chosen, possible))
    assert point["by_chance"] == pytest.approx(np.mean([right for _, right in candidates]))


def test_best_of_n_leaves_out_problems_with_fewer_candidates() -> None:
    points = report.best_of_n_curve(
        scores=np.array([1.0, 2, 3]),
        is_right=np.array([True, False, True]),
        problems=np.array([0, 0, 1]),
        sizes=[1, 2, 3],
    )
    assert [(point["n"], point["problems"]) for point in points] == [(1, 2), (2, 1)]
    assert (points[1]["chosen"], points[1]["possible"]) == (0.0, 1.0)
