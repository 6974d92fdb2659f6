"""Confusion table of reference against given ratings, and the shares derived from it.

    recall of k    share of "k" among ratings whose reference is k
    missed errors  share of anything but negative among ratings whose reference is negative
    false alarms   share of negative among ratings whose reference is not negative

Missed errors cost more: they teach a model that a wrong step is right. The reference is gold or consensus.

Misses and false alarms of a signal: J. A. Swets (1988), "Measuring the accuracy of diagnostic systems",
doi:10.1126/science.3287615.
"""

import numpy as np

from stats import estimation
from stats.arrays import Floats, Ints, divide
from stats.estimates import Reason
from stats.estimation import ClusterSample, Statistic


def count_tables(*, reference: Ints, given: Ints, problems: Ints, k: int, n_problems: int) -> Floats:
    """Return counts (G, K, K) per problem, rows the reference and columns the given rating, both as scale indices."""
    keys = (problems * k + reference) * k + given
    counts = np.bincount(keys, minlength=n_problems * k * k)
    return counts.reshape(n_problems, k, k).astype(np.float64)


def sample_from_tables(tables: Floats) -> ClusterSample:
    """Return the tables in the form that `estimation.estimate` takes."""
    flat = tables.reshape(len(tables), tables.shape[1] * tables.shape[2])
    return estimation.sample_from_sums(flat, is_comparable=flat.sum(axis=1) > 0, units=int(flat.sum()))


def recall(*, place: int, k: int) -> Statistic:
    return _share(rows=[place], columns=[place], k=k)


def missed_errors(*, negative: int, k: int) -> Statistic:
    return _share(rows=[negative], columns=[place for place in range(k) if place != negative], k=k)


def false_alarms(*, negative: int, k: int) -> Statistic:
    return _share(rows=[place for place in range(k) if place != negative], columns=[negative], k=k)


def _share(*, rows: list[int], columns: list[int], k: int) -> Statistic:
    def share(flat: Floats) -> Floats:
        cases = flat.reshape(*flat.shape[:-1], k, k)[..., rows, :]
        return divide(cases[..., columns].sum(axis=(-2, -1)), cases.sum(axis=(-2, -1)))

    return Statistic(share, 0.0, Reason.NO_CASES)
