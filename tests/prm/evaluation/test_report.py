"""The whole table of a PRM, and the calibration error in it."""

import numpy as np
import pytest

from labeling.agreement import calibration as plain
from labeling.agreement.arrays import Floats
from prm.evaluation import calibration, report
from prm.evaluation.report import Judged
from prm.evaluation.steps import NONE
from tests.prm.evaluation.benchmarks import labelled


def judged(p_wrong: Floats | None = None, *, n: int = 60, seed: int = 0) -> Judged:
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 7, n)
    steps = int(lengths.sum())
    truth = np.where(random.random(n) < 0.5, NONE, random.integers(0, lengths))
    return Judged(
        p_wrong=random.random(steps) if p_wrong is None else p_wrong,
        characters=random.integers(20, 60, steps),
        lengths=lengths,
        truth=truth,
        problems=random.integers(0, 30, n),
        sources=np.zeros(n, dtype=np.int64),
    )


def truth_of(told: Judged) -> Floats:
    starts = np.cumsum(told.lengths) - told.lengths
    p_wrong = np.zeros(int(told.lengths.sum()))
    p_wrong[(starts + told.truth)[told.truth != NONE]] = 1.0
    return p_wrong


def test_prm_that_knows_the_truth_has_the_best_figures() -> None:
    told = judged(truth_of(judged()))
    for found in (report.of_traces(told, threshold=0.5), report.by_threshold_of_others(told)):
        values = {name: estimate.value for name, estimate in found.items()}
        assert values["f1"] == values["auc"] == values["risk_set_auc"] == values["risk_set_auc_length_matched"] == 1.0
        assert values["ece"] == values["over_credit"] == values["over_blame"] == 0.0


def test_keep_takes_whole_traces() -> None:
    told = judged()
    some = told.keep(np.arange(60) % 3 == 0)
    assert some.lengths.sum() == len(some.p_wrong)
    assert report.counts(some)["traces"] == 20


def test_calibration_error_is_that_of_counting_and_has_an_interval() -> None:
    steps = labelled(n=400, problems=40, scores=30)
    found = calibration.expected_error(steps)
    expected = plain.expected_error(confidences=1 - steps.p_wrong, is_right=~steps.is_wrong)
    assert found.value == pytest.approx(expected)
    assert found.interval is not None
    assert found.interval.low <= expected <= found.interval.high
