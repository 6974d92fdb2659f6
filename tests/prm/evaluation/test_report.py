"""The whole table of figures, and its calibration error."""

import numpy as np
import pytest

from prm.evaluation import calibration, report
from prm.evaluation.labeled_steps import NO_ERROR, JudgedTraces
from stats import calibration as plain
from stats.arrays import Floats
from tests.prm.evaluation.benchmarks import make_labeled_steps


def make_judged(p_wrong: Floats | None = None, *, n: int = 60, seed: int = 0) -> JudgedTraces:
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
    traces = make_judged(true_scores(make_judged()))
    for result in (report.report_on_traces(traces, threshold=0.5), report.report_across_folds(traces)):
        values = {name: estimate.value for name, estimate in result.items()}
        assert values["f1"] == values["auc"] == values["risk_set_auc"] == values["risk_set_auc_length_matched"] == 1.0
        assert values["ece"] == values["over_credit"] == values["over_blame"] == 0.0


def test_keep_selects_whole_traces() -> None:
    traces = make_judged()
    some = traces.keep(np.arange(60) % 3 == 0)
    assert some.lengths.sum() == len(some.p_wrong)
    assert report.count_judged(some)["traces"] == 20


def test_calibration_error_equals_the_plain_one_and_has_an_interval() -> None:
    steps = make_labeled_steps(n=400, problems=40, scores=30)
    result = calibration.expected_calibration_error(steps)
    expected = plain.expected_calibration_error(confidences=1 - steps.p_wrong, is_right=~steps.is_wrong)
    assert result.value == pytest.approx(expected)
    assert result.interval is not None
    assert result.interval.low <= expected <= result.interval.high
