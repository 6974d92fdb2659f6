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


def divide(numerator: Floats, denominator: Floats) -> Floats:
    """The quotient, NaN where the denominator is nothing (rounding of subtracted sums counts as nothing)."""
    top, bottom = np.broadcast_arrays(np.asarray(numerator, dtype=np.float64), np.asarray(denominator))
    result = np.full(top.shape, np.nan)
    np.divide(top, bottom, out=result, where=np.abs(bottom) > 1e-9)
    return result
