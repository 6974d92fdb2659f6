"""Array helpers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from stats.arrays import Floats, unique_rows

TABLES = arrays_of.arrays(np.float64, st.tuples(st.integers(0, 30), st.integers(1, 6)), elements=st.integers(-2, 3))


@given(TABLES)
def test_unique_rows_finds_each_row_once(rows: Floats) -> None:
    kinds, kind = unique_rows(rows)
    assert np.array_equal(kinds[kind], rows)
    assert len({tuple(row) for row in rows.tolist()}) == len(kinds)


def test_unique_rows_separates_rows_with_equal_hashes() -> None:
    """The numbers are so large that adding their small differences loses them."""
    rows = np.array([[1e18, 1.0], [1e18, 2.0], [1e18, 1.0]])
    kinds, kind = unique_rows(rows)
    assert np.array_equal(kinds[kind], rows)
    assert len(kinds) == 2


def test_unique_rows_does_not_depend_on_order() -> None:
    rows = np.random.default_rng(1).integers(0, 3, (200, 4)).astype(np.float64)
    assert np.array_equal(unique_rows(rows)[0], unique_rows(rows[::-1])[0])
