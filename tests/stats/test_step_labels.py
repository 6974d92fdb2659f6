"""Step labels follow from the place of the first error, never from survivors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stats import first_error_reports, step_labels

THERE = first_error_reports.enumerate_places(np.array([4, 2]))
POSTERIOR = np.array([0.1, 0.1, 0.6, 0.1, 0.1, 0.0, 0.1, 0.9])
# (-1, 0, +1) ratings by raters still at risk at each place; the two "none" places have none.
COUNTS = np.array([[0, 0, 3], [1, 2, 0], [2, 0, 0], [0, 0, 1], [0, 0, 0], [0, 1, 1], [1, 0, 1], [0, 0, 0]], dtype=float)


def test_labels_are_the_raters_before_the_error_and_none_behind_it() -> None:
    found = step_labels.derive_step_labels(
        first_errors=np.array([2, 2]), posterior=POSTERIOR, there=THERE, counts=COUNTS
    )
    told = [int(label) if has else None for label, has in zip(found.labels, found.has_label, strict=True)]
    assert told == [1, 0, -1, None, None, 1, 1, None]
    assert found.n_at_risk.tolist() == [3, 3, 2, 1, 0, 2, 2, 0]
    assert found.confidences[found.has_label] == pytest.approx([0.9, 0.8, 0.6, 1.0, 0.9])


def test_step_without_an_approving_rater_gets_no_label() -> None:
    counts = COUNTS.copy()
    counts[1] = [3, 0, 0]
    found = step_labels.derive_step_labels(
        first_errors=np.array([2, 2]), posterior=POSTERIOR, there=THERE, counts=counts
    )
    assert not found.has_label[1]


@settings(max_examples=50)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(0, 1000))
def test_no_label_ever_stands_behind_the_first_error(lengths: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    there = first_error_reports.enumerate_places(np.array(lengths))
    first_errors = np.array([random.integers(0, n + 1) for n in lengths])
    found = step_labels.derive_step_labels(
        first_errors=first_errors,
        posterior=random.random(there.n),
        there=there,
        counts=random.integers(0, 3, (there.n, 3)).astype(float),
    )
    assert not found.has_label[there.steps > first_errors[there.traces]].any()
    assert (found.labels[found.has_label & (there.steps == first_errors[there.traces])] == -1).all()
    assert (found.labels[found.has_label & (there.steps < first_errors[there.traces])] >= 0).all()
