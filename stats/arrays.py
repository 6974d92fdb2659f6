"""Array type aliases, and the array helpers that all statistics use."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def sum_by(*, groups: Ints, rows: Floats, n_groups: int) -> Floats:
    """Sum the rows of each group: (R, S) becomes (n_groups, S)."""
    columns = [np.bincount(groups, weights=column, minlength=n_groups) for column in rows.T]
    return np.stack(columns, axis=1) if columns else np.zeros((n_groups, 0))


def number_values(values: Sequence[Any]) -> Ints:
    """Number the distinct values from 0, in their order, and return the number of each value."""
    return np.unique(np.array(values), return_inverse=True)[1].astype(np.int64)


def unique_rows(rows: Floats) -> tuple[Floats, Ints]:
    """Return the distinct rows, and for each row the index of its distinct row.

    Like `np.unique(rows, axis=0)`, but ten times as fast: rows are compared by one hash each. If two different rows
    have the same hash, the function falls back to `np.unique`.
    """
    hashes = np.zeros(len(rows))
    for index, column in enumerate(rows.T):
        hashes += column * np.sqrt(index + 2.0) ** (1 + index % 3)
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    if not np.array_equal(rows[first][inverse], rows):
        distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
        return distinct, inverse.ravel()
    return rows[first], inverse


def divide(numerator: Floats, denominator: Floats) -> Floats:
    """Return the quotient, or NaN where the denominator is zero up to rounding."""
    top, bottom = np.broadcast_arrays(np.asarray(numerator, dtype=np.float64), np.asarray(denominator))
    result = np.full(top.shape, np.nan)
    np.divide(top, bottom, out=result, where=np.abs(bottom) > 1e-9)
    return result
