"""Several statistics on one axis."""

import re

import pytest

from charts import forest


@pytest.mark.parametrize(("low", "named"), [(0.3, 8), (0.0, 11), (-0.15, 13), (-0.25, 7), (-1.0, 11)])
def test_draw_names_as_many_tenths_as_can_be_read(low: float, named: int) -> None:
    drawn = forest.draw_forest([forest.ForestRow(0.5, None, None)], name="One", of=forest.choose_axis_range(low, 1.0))
    words = re.findall(r"<text[^>]*>([^<]+)</text>", str(drawn))
    assert (len(words), words[-1]) == (named, "1.0")
