"""The table of reference against given ratings, and the two ways to be wrong that it tells apart.

    recall of k    of the ratings whose reference is k, the share that says k
    over-credit    of the ratings whose reference is negative, the share that does not say so: a missed error
    over-blame     of the ratings whose reference is not negative, the share that says negative: a false alarm

Over-credit is the costly one: it teaches a model that a wrong step is right. The reference is gold or consensus.

Misses and false alarms of a signal, the signal being an error: J. A. Swets (1988), "Measuring the accuracy of
diagnostic systems", doi:10.1126/science.3287615.
"""

import numpy as np

from stats import estimation, kappa, weights
from stats.arrays import Floats, Ints, divide
from stats.estimates import Reason
from stats.estimation import ClusterSample, Statistic


def count_tables(*, reference: Ints, given: Ints, problems: Ints, k: int, n_problems: int) -> Floats:
    """(G, K, K) counts per problem from places on the scale: rows the reference, columns what was said."""
    keys = (problems * k + reference) * k + given
    counted = np.bincount(keys, minlength=n_problems * k * k)
    return counted.reshape(n_problems, k, k).astype(np.float64)


def sample_from_tables(counted: Floats) -> ClusterSample:
    """The tables as the sums that `estimation.estimate` takes."""
    flat = counted.reshape(len(counted), counted.shape[1] * counted.shape[2])
    n = int(flat.sum())
    ones = np.ones(len(flat), dtype=np.int64)
    compared = flat.sum(axis=1) > 0
    return estimation.sample_from_sums(
        flat, copies=ones, is_comparable=compared, units=n, pairable=n, nothing=Reason.NO_CASES
    )


def recall(*, place: int, k: int) -> Statistic:
    return _share(rows=[place], columns=[place], k=k)


def accuracy(*, k: int) -> Statistic:
    def of(flat: Floats) -> Floats:
        square = flat.reshape(*flat.shape[:-1], k, k)
        return divide(np.trace(square, axis1=-2, axis2=-1), square.sum(axis=(-2, -1)))

    return Statistic(of, 0.0, Reason.NO_CASES)


def missed_errors(*, negative: int, k: int) -> Statistic:
    return _share(rows=[negative], columns=[place for place in range(k) if place != negative], k=k)


def false_alarms(*, negative: int, k: int) -> Statistic:
    return _share(rows=[place for place in range(k) if place != negative], columns=[negative], k=k)


def cohen_kappa_statistic(*, values: tuple[float, ...], weight: Floats | None = None) -> Statistic:
    """Cohen's kappa of the two sides of the table, for an estimate with its interval."""
    chosen = weights.identity(values) if weight is None else weight

    def of(flat: Floats) -> Floats:
        return kappa.cohen_kappa(flat.reshape(*flat.shape[:-1], len(values), len(values)), chosen)

    return Statistic(of, -1.0, Reason.NO_VARIATION)


def _share(*, rows: list[int], columns: list[int], k: int) -> Statistic:
    def of(flat: Floats) -> Floats:
        asked = flat.reshape(*flat.shape[:-1], k, k)[..., rows, :]
        return divide(asked[..., columns].sum(axis=(-2, -1)), asked.sum(axis=(-2, -1)))

    return Statistic(of, 0.0, Reason.NO_CASES)
