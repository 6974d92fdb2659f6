"""Names for the array types that the arithmetic passes around, and the grouped sum that everything rests on."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def sum_by(*, groups: Ints, rows: Floats, n_groups: int) -> Floats:
    """Add up the rows of each group: (R, S) becomes (n_groups, S)."""
    columns = [np.bincount(groups, weights=column, minlength=n_groups) for column in rows.T]
    return np.stack(columns, axis=1) if columns else np.zeros((n_groups, 0))


def unique_rows(rows: Floats) -> tuple[Floats, Ints]:
    """The different rows, and of each row which one it is.

    As `np.unique` of rows, by one number a row: sorting numbers takes a tenth of sorting rows. Where rows that differ
    have the same number, rows are sorted after all.
    """
    marks = np.zeros(len(rows))
    for place, column in enumerate(rows.T):
        marks += column * np.sqrt(place + 2.0) ** (1 + place % 3)
    _, first, which = np.unique(marks, return_index=True, return_inverse=True)
    if not np.array_equal(rows[first][which], rows):
        different, which = np.unique(rows, axis=0, return_inverse=True)
        return different, which.ravel()
    return rows[first], which


def divide(numerator: Floats, denominator: Floats) -> Floats:
    """The quotient, NaN where the denominator is nothing (rounding of subtracted sums counts as nothing)."""
    top, bottom = np.broadcast_arrays(np.asarray(numerator, dtype=np.float64), np.asarray(denominator))
    result = np.full(top.shape, np.nan)
    np.divide(top, bottom, out=result, where=np.abs(bottom) > 1e-9)
    return result
