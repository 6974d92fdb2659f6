"""Stated probabilities: hand-computed figures, and the bias of the calibration error."""

import numpy as np
import pytest

from stats import (
    calibration,
    reliability,
)


def test_calibrated_probabilities_have_a_smaller_error_than_the_plain_estimate() -> None:
    random = np.random.default_rng(3)
    values, plain = [], []
    for _ in range(60):
        p = random.choice([0.4, 0.6, 0.8, 1.0], 400)
        is_right = random.random(400) < p
        found = reliability.estimate_reliability(confidences=p, is_right=is_right, problems=np.arange(400))
        values.append(found.calibration_error.value or 0.0)
        plain.append(calibration.expected_calibration_error(confidences=p, is_right=is_right, bins=10))
    assert np.mean(values) < np.mean(plain) / 1.4
    over = reliability.estimate_reliability(
        confidences=np.full(400, 0.9), is_right=np.arange(400) < 240, problems=np.arange(400)
    )
    assert over.calibration_error.value == pytest.approx(0.3, abs=0.002)
    assert over.brier.value == pytest.approx(0.6 * 0.01 + 0.4 * 0.81)
    assert [(each.low, each.n, each.right_share) for each in over.bins] == [(0.9, 400, 0.6)]
