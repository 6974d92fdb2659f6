"""Estimate the agreement statistics of steps that are always shown together.

No single coefficient is enough: when raters stop at the first error, the same judgments move percent agreement and AC1
up and alpha down. So each result has all statistics, with intervals, counts, and a reason for each missing value.
"""

from collections.abc import Callable, Sequence

import numpy as np

from stats import coefficients, estimation
from stats.arrays import Floats
from stats.estimates import Estimate, Reason
from stats.estimation import Statistic
from stats.rating_patterns import PairSums, RatingPatterns

_STATISTICS: dict[str, tuple[Callable[[PairSums], Floats], float]] = {
    "alpha_nominal": (coefficients.alpha_nominal, -1.0),
    "alpha_ordinal": (coefficients.alpha_ordinal, -1.0),
    "alpha_interval": (coefficients.alpha_interval, -1.0),
    "gwet_ac1": (coefficients.gwet_ac1, -1.0),
    "gwet_ac2_quadratic": (
        lambda sums: coefficients.gwet_ac2(sums, coefficients.quadratic_weights(sums.values)),
        -1.0,
    ),
    "fleiss_kappa": (coefficients.fleiss_kappa, -1.0),
    "pairwise_agreement": (coefficients.pairwise_agreement, 0.0),
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
    """Estimate the named statistics of these patterns."""
    sums, sample = estimation.sample_from_patterns(patterns)
    return estimation.estimate_all(
        statistics={name: _statistic(name, sums) for name in names},
        sample=sample,
        level=level,
        seed=seed,
        with_bootstrap=with_bootstrap,
    )


def label_shares(patterns: RatingPatterns) -> dict[float, float]:
    """Return the share of each value among all ratings."""
    totals = patterns.all_units @ patterns.counts
    n_ratings = max(int(totals.sum()), 1)
    return {value: int(count) / n_ratings for value, count in zip(patterns.values, totals, strict=True)}


def _statistic(name: str, sums: PairSums) -> Statistic:
    coefficient, floor = _STATISTICS[name]
    return Statistic(lambda matrix: np.asarray(coefficient(sums.put(matrix))), floor, Reason.NO_VARIATION)
