"""A share of cases of which something holds, say that they went wrong, with its interval by problem.

    share = Σ those / Σ cases,   delete-one-problem jackknife with Student's t on the Fisher scale (`jackknife`)

Cases of one problem are alike: several traces of it, and several readings of one trace. A binomial interval over cases
would take ten readings of one hard trace for ten hard traces.
"""

from collections.abc import Mapping

import numpy as np

from labeling.agreement import estimation
from labeling.agreement.arrays import Floats, Ints, divide
from labeling.agreement.estimation import Statistic
from labeling.agreement.result import Estimate, Reason


def of_problems(counts: Mapping[int, tuple[int, int]], *, level: float = 0.95) -> Estimate:
    """`counts` are (those, cases) by problem."""
    rows = np.array(list(counts.values()), dtype=np.int64).reshape(-1, 2)
    return of_counts(rows[:, 0], rows[:, 1], level=level)


def of_counts(those: Ints, cases: Ints, *, level: float = 0.95) -> Estimate:
    """A place a problem. Problems that are alike are told once: a million of them cost one sort of numbers."""
    base = int(cases.max(initial=0)) + 1
    keys, copies = np.unique(cases * base + those, return_counts=True)
    matrix = np.column_stack([keys % base, keys // base]).astype(np.float64)
    n = int(cases.sum())
    sample = estimation.of_problems(
        matrix,
        copies=copies.astype(np.int64),
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
