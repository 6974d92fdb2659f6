"""The step statistics that are shown together, never one alone: one number lies.

On the same judgments, stopping at the first error moved pairwise agreement and AC1 up and alpha down. So the table has
all of them, each with interval, counts, and the reason where it has no value.
"""

from collections.abc import Callable, Sequence

import numpy as np

from stats import ac1, alpha, estimation, kappa, weights
from stats.arrays import Floats, divide
from stats.estimates import Estimate, Reason
from stats.estimation import Statistic
from stats.rating_patterns import PairSums, RatingPatterns

# Pairwise percent agreement: of all pairs of ratings of one unit, the share that says the same.


def pairwise_agreement(sums: PairSums) -> Floats:
    return divide(sums.agreeing_pairs, sums.all_pairs)


_STATISTICS: dict[str, tuple[Callable[[PairSums], Floats], float]] = {
    "alpha_nominal": (alpha.nominal, -1.0),
    "alpha_ordinal": (alpha.ordinal, -1.0),
    "alpha_interval": (alpha.interval, -1.0),
    "gwet_ac1": (ac1.gwet_ac1, -1.0),
    "gwet_ac2_quadratic": (lambda pairs: ac1.gwet_ac2(pairs, weights.quadratic(pairs.values)), -1.0),
    "fleiss_kappa": (kappa.fleiss_kappa, -1.0),
    "pairwise_agreement": (pairwise_agreement, 0.0),
}
STATISTIC_NAMES = tuple(_STATISTICS)


def estimate_step_statistics(
    patterns: RatingPatterns,
    *,
    names: Sequence[str] = STATISTIC_NAMES,
    level: float = 0.95,
    seed: int = 0,
    with_bootstrap: bool = True,
) -> dict[str, Estimate]:
    """Step statistics of these patterns, by name."""
    pairs, sample = estimation.sample_from_patterns(patterns)
    statistics = {name: _statistic(name, pairs) for name in names}
    return estimation.estimates(
        statistics=statistics, sample=sample, level=level, seed=seed, with_bootstrap=with_bootstrap
    )


def label_shares(patterns: RatingPatterns) -> dict[float, float]:
    """How the ratings spread over the values, every rating counting one."""
    totals = patterns.all_units @ patterns.counts
    everything = max(int(totals.sum()), 1)
    return {value: int(count) / everything for value, count in zip(patterns.values, totals, strict=True)}


def _statistic(name: str, pairs: PairSums) -> Statistic:
    of, floor = _STATISTICS[name]

    def on_matrix(matrix: Floats) -> Floats:
        return np.asarray(of(pairs.put(matrix)))

    return Statistic(on_matrix, floor, Reason.NO_VARIATION)
