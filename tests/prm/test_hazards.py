"""Hazards of a PRM: the value before the first step, and context steps."""

import numpy as np
import pytest

from prm import hazards
from prm.models import PRM
from prm.selection.semantics import UNKNOWN_VALUE

CONTEXT = float("nan")


def test_value_before_the_first_step_is_the_mean_after_the_first_step() -> None:
    prm = PRM(semantics="value")
    scores, lengths = np.array([0.9, 0.1, CONTEXT, 0.5, 0.4]), np.array([2, 2, 1])
    assert hazards.estimate_first_value(prm, scores, lengths) == pytest.approx(0.6)
    assert hazards.estimate_first_value(PRM(semantics="hazard"), scores, lengths) == UNKNOWN_VALUE
    assert hazards.estimate_first_value(prm, np.zeros(0), np.zeros(0, dtype=np.int64)) == UNKNOWN_VALUE


def test_fall_over_context_counts_once_and_context_is_never_wrong() -> None:
    prm = PRM(semantics="value", calibration={"first_value": 0.8})
    scores, lengths = np.array([CONTEXT, 0.4, CONTEXT, 0.2, 0.6]), np.array([4, 1])
    assert hazards.raw_hazards(prm, scores, lengths) == pytest.approx([0.0, 0.5, 0.0, 0.5, 0.25])


def test_calibration_does_not_change_context() -> None:
    line = {"intercept": 1.0, "slope": 1.0, "n": 100, "is_fitted": True}
    calibrated = hazards.calibrated_hazards(
        PRM(semantics="hazard", calibration=line), np.array([CONTEXT, 0.5]), np.array([2])
    )
    assert calibrated == pytest.approx([0.0, 1 / (1 + np.exp(-1))])
