"""The forest plot."""

import re

import pytest

from charts import forest


@pytest.mark.parametrize(("low", "n_labels"), [(0.3, 8), (0.0, 11), (-0.15, 13), (-0.25, 7), (-1.0, 11)])
def test_only_legible_tenths_are_labeled(low: float, n_labels: int) -> None:
    svg = forest.draw_forest([forest.ForestRow(0.5, None, None)], name="One", of=forest.choose_axis_range(low, 1.0))
    labels = re.findall(r"<text[^>]*>([^<]+)</text>", str(svg))
    assert len(labels) == n_labels
    assert labels[-1] == "1.0"
