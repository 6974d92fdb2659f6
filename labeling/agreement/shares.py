"""A share of cases in which something went wrong, with its interval by problem.

    share = Σ wrong / Σ cases,   delete-one-problem jackknife with Student's t on the Fisher scale (`jackknife`)

Cases of one problem are alike: several traces of it, and several readings of one trace. A binomial interval over cases
would take ten readings of one hard trace for ten hard traces.
"""

from collections.abc import Mapping

import numpy as np

from labeling.agreement import estimation
from labeling.agreement.arrays import Floats, divide
from labeling.agreement.estimation import Statistic
from labeling.agreement.result import Estimate, Reason


def of_problems(counts: Mapping[int, tuple[int, int]], *, level: float = 0.95) -> Estimate:
    """`counts` are (wrong, cases) by problem."""
    matrix = np.array(list(counts.values()), dtype=np.float64).reshape(-1, 2)
    n = int(matrix[:, 1].sum())
    sample = estimation.of_problems(
        matrix,
        copies=np.ones(len(matrix), dtype=np.int64),
        is_comparable=matrix[:, 1] > 0,
        units=n,
        pairable=n,
        nothing=Reason.NO_CASES,
    )
    found = estimation.estimates(statistics={"": _SHARE}, sample=sample, level=level, with_bootstrap=False)
    return found[""]


def _share(sums: Floats) -> Floats:
    return divide(sums[..., 0], sums[..., 1])


_SHARE = Statistic(_share, 0.0, Reason.NO_CASES)
