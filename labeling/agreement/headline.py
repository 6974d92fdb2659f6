"""The step statistics that are shown together, never one alone: one number lies.

On the same judgments, stopping at the first error moved pairwise agreement and AC1 up and alpha down. So the table has
all of them, each with interval, counts, and the reason where it has no value.
"""

from collections.abc import Callable, Sequence

import numpy as np

from labeling.agreement import alpha, estimation, fleiss, gwet, pairwise, weights
from labeling.agreement.arrays import Floats
from labeling.agreement.estimation import Statistic
from labeling.agreement.patterns import Patterns
from labeling.agreement.result import Estimate, Reason
from labeling.agreement.sums import PairSums

_OF_SUMS: dict[str, tuple[Callable[[PairSums], Floats], float]] = {
    "alpha_nominal": (alpha.nominal, -1.0),
    "alpha_ordinal": (alpha.ordinal, -1.0),
    "alpha_interval": (alpha.interval, -1.0),
    "gwet_ac1": (gwet.ac1, -1.0),
    "gwet_ac2_quadratic": (lambda pairs: gwet.ac2(pairs, weights.quadratic(pairs.values)), -1.0),
    "fleiss_kappa": (fleiss.kappa, -1.0),
    "pairwise_agreement": (pairwise.agreement, 0.0),
}
NAMES = tuple(_OF_SUMS)


def of_patterns(
    patterns: Patterns,
    *,
    names: Sequence[str] = NAMES,
    level: float = 0.95,
    seed: int = 0,
    with_bootstrap: bool = True,
) -> dict[str, Estimate]:
    """Step statistics of these patterns, by name."""
    pairs, sample = estimation.of_patterns(patterns)
    statistics = {name: _statistic(name, pairs) for name in names}
    return estimation.estimates(
        statistics=statistics, sample=sample, level=level, seed=seed, with_bootstrap=with_bootstrap
    )


def label_shares(patterns: Patterns) -> dict[float, float]:
    """How the ratings spread over the values, every rating counting one."""
    totals = patterns.all_units @ patterns.counts
    everything = max(int(totals.sum()), 1)
    return {value: int(count) / everything for value, count in zip(patterns.values, totals, strict=True)}


def _statistic(name: str, pairs: PairSums) -> Statistic:
    of, floor = _OF_SUMS[name]

    def on_matrix(matrix: Floats) -> Floats:
        return np.asarray(of(pairs.put(matrix)))

    return Statistic(on_matrix, floor, Reason.NO_VARIATION)
