"""Ratings that Hypothesis thinks up: a matrix of raters by units with holes."""

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from stats import rating_patterns
from stats.rating_patterns import RatingPatterns

HOLE = -1


def matrices(*, k: int = 3) -> st.SearchStrategy[npt.NDArray[np.int64]]:
    """(raters, units) places on a scale of k values, HOLE where a rater did not rate."""
    shape = st.tuples(st.integers(2, 5), st.integers(2, 12))
    return shape.flatmap(lambda s: hnp.arrays(np.int64, s, elements=st.integers(HOLE, k - 1)))


def matrix_patterns(
    matrix: npt.NDArray[np.int64], *, problems_of: int = 1, values: tuple[float, ...] = (-1.0, 0.0, 1.0)
) -> RatingPatterns:
    """The patterns of a matrix, `problems_of` neighboring units belonging to one problem."""
    n_units = matrix.shape[1]
    rated = matrix != HOLE
    units = np.broadcast_to(np.arange(n_units), matrix.shape)[rated]
    return rating_patterns.count_patterns(
        units=units, labels=matrix[rated], problem_of_unit=np.arange(n_units) // problems_of, values=values
    )
