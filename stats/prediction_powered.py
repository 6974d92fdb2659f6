"""Estimate figures of a whole pool from few labels by people and many by a machine: power-tuned prediction-powered
inference.

    θ_λ = θ_people + λ (machine's mean over the pool - machine's mean over the traces that people labeled)

The second term has mean zero whatever the machine's quality, so a bad machine only fails to help. Labels by people are
weighed by their inverse probability of being drawn. With u and v the influence of one problem on the two parts,

    λ = -Σ u v / Σ v²,   Var(θ_λ) = n/(n - 2) Σ (u + λ v)²   over problems, n those with labels by people

which minimizes the variance ("power tuning"). For one trace per problem, equal weights and a pool apart from the labels
this is λ = Cov(Y, f) / ((1 + n/N) Var f) of the paper. Ratios (the share of a label among all steps) use residuals
y - θ d in place of y. Shares get their interval on the logit scale. λ costs one degree of freedom.

Recorded covariates of the traces (whether the final answer is right, the length) are further machines: each has a term
of its own with mean zero, λ becomes a vector, and each costs a degree of freedom. Their columns are used in order, at
most one per `PROBLEMS_PER_COVARIATE` problems with labels, if they lower the error of problems that λ is not fitted to.
The variance is that of these errors, too, because λ fits best where few problems decide it.

The intervals are shorter than those of people alone by 1 - √(1 - ρ² N/(n + N)), with ρ the correlation of the labels
with the best linear combination of machine and covariates, n labels, and N traces without. No estimator that knows
only these does better asymptotically than with the best function of them.

A. N. Angelopoulos, J. C. Duchi, T. Zrnic (2023), "PPI++: efficient prediction-powered inference", arXiv:2311.01453;
A. N. Angelopoulos et al. (2023), doi:10.1126/science.adi6000; with drawn labels: T. Zrnic, E. J. Candès (2024),
arXiv:2403.03208; the same estimator in survey sampling: C.-E. Särndal, B. Swensson, J. Wretman (1992),
doi:10.1007/978-1-4612-4378-6, ch. 6.
"""

import math
from dataclasses import dataclass

import numpy as np

from stats.arrays import Bools, Floats, Ints
from stats.estimates import Interval, Reason
from stats.intervals import clopper_pearson_interval, t_quantile

MIN_LABELED_PROBLEMS = 20
PROBLEMS_PER_COVARIATE = 20
_EXPLAINED = 1e-3  # a column with less of its length left, after those before, adds nothing


@dataclass(frozen=True)
class LabeledPool:
    """One row per trace. `values / sizes` is estimated: the sum of the labels of people over the sum of their cases.

    `values` and `sizes` are read where `weights` > 0, which is where people labeled; weights are inverse probabilities.
    `predicted` and `predicted_sizes` are the machine's, for all rows; `in_pool` marks those that the figure is about.
    """

    values: Floats
    sizes: Floats
    weights: Floats
    predicted: Floats
    predicted_sizes: Floats
    in_pool: Bools
    problems: Ints
    covariates: Floats | None = None  # a column each, recorded for all rows


@dataclass(frozen=True)
class PoweredEstimate:
    """A figure from labels of people only, and with the machine's. `tuning` is λ; without a figure, `reason`."""

    n_labeled: int
    n_problems: int  # with labels by people
    n_pool: int
    human: float | None = None
    human_interval: Interval | None = None
    value: float | None = None
    interval: Interval | None = None
    tuning: float | None = None
    n_covariates: int = 0  # that were used
    reason: Reason | None = None

    @property
    def saved_share(self) -> float | None:
        """How much shorter the interval is than with labels of people only."""
        if self.interval is None or self.human_interval is None:
            return None
        human = self.human_interval.high - self.human_interval.low
        return 1 - (self.interval.high - self.interval.low) / human if human else None


def label_pool(
    *,
    values: Floats,
    weights: Floats,
    predicted: Floats,
    problems: Ints,
    in_pool: Bools | None = None,
    covariates: Floats | None = None,
) -> LabeledPool:
    """Return a pool whose figure is the mean over traces."""
    ones = np.ones(len(values))
    is_in = np.ones(len(values), dtype=np.bool_) if in_pool is None else in_pool
    return LabeledPool(values, ones, weights, predicted, ones, is_in, problems, covariates)


def estimate_with_predictions(pool: LabeledPool, *, level: float = 0.95) -> PoweredEstimate:
    """Estimate the figure with its intervals by problem."""
    _, problem = np.unique(pool.problems, return_inverse=True)
    is_labeled = pool.weights > 0
    n_labeled, n_pool = int(is_labeled.sum()), int(pool.in_pool.sum())
    n_problems = len(np.unique(problem[is_labeled]))
    if n_problems < MIN_LABELED_PROBLEMS or not n_pool:
        return PoweredEstimate(n_labeled, n_problems, n_pool, reason=Reason.FEW_LABELED)
    weights = np.where(is_labeled, pool.weights, 0.0)
    size = float((weights * pool.sizes)[is_labeled].sum())
    if size <= 0:
        return PoweredEstimate(n_labeled, n_problems, n_pool, reason=Reason.NO_CASES)
    human = float((weights * pool.values)[is_labeled].sum()) / size
    residuals = np.where(is_labeled, pool.values - human * pool.sizes, 0.0)
    u: Floats = np.bincount(problem, weights=weights * residuals / size).astype(np.float64)
    residuals = pool.predicted - human * pool.predicted_sizes
    difference, v = _compare_predictions(pool, residuals, weights, size, problem)
    if float(u @ u) <= 1e-18:
        n_hits = n_problems if human >= 0.5 else 0
        exact = clopper_pearson_interval(right=n_hits, n=n_problems, level=level)
        return PoweredEstimate(n_labeled, n_problems, n_pool, human, exact, reason=Reason.NO_SPREAD)
    error = math.sqrt(n_problems / (n_problems - 1) * float(u @ u))
    human_interval = _share_interval(human, error, _count_freedom(u, n_problems - 1), level)
    if float(v @ v) <= 1e-18:
        return PoweredEstimate(n_labeled, n_problems, n_pool, human, human_interval, reason=Reason.NO_DEPENDENCE)
    columns = [(difference, v)]
    for covariate in [] if pool.covariates is None else list(pool.covariates.T):
        found = _compare_predictions(pool, covariate, weights, size, problem)
        known = np.stack([each for _, each in columns], axis=1)
        if len(columns) * PROBLEMS_PER_COVARIATE < n_problems and _shortens(u, known, found[1]):
            columns.append(found)
    tuning, combined = _tune(u, np.stack([each for _, each in columns], axis=1), n_problems)
    error = math.sqrt(float(combined @ combined))
    value = human + float(tuning @ [each for each, _ in columns])
    interval = _share_interval(value, error, _count_freedom(combined, n_problems - 1 - len(columns)), level)
    weight = float(tuning[0])
    used = len(columns) - 1
    return PoweredEstimate(n_labeled, n_problems, n_pool, human, human_interval, value, interval, weight, used)


def _shortens(u: Floats, known: Floats, column: Floats) -> bool:
    """Return whether a column varies, is no linear combination of those before, and lowers the leave-one-out error."""
    left = column - known @ np.linalg.lstsq(known, column)[0]
    if float(left @ left) <= max(_EXPLAINED**2 * float(column @ column), 1e-18):
        return False
    errors = [_leave_one_out(u, columns) for columns in (known, np.column_stack([known, column]))]
    return float(errors[1] @ errors[1]) < float(errors[0] @ errors[0])


def _leave_one_out(u: Floats, columns: Floats) -> Floats:
    """Return the combined influence of each problem with a λ that is fitted without it."""
    combined = u - columns @ np.linalg.lstsq(columns, u)[0]
    leverage = np.einsum("ij,ji->i", columns, np.linalg.pinv(columns))
    return np.asarray(combined / np.maximum(1 - leverage, 0.1), dtype=np.float64)


def _tune(u: Floats, columns: Floats, n_problems: int) -> tuple[Floats, Floats]:
    """Return λ, and the influences of the combined estimate with the correction for its degrees of freedom."""
    tuning = np.asarray(-np.linalg.lstsq(columns, u)[0], dtype=np.float64)
    if columns.shape[1] == 1:
        return tuning, (u + columns @ tuning) * math.sqrt(n_problems / (n_problems - 2))
    return tuning, _leave_one_out(u, columns) * math.sqrt(n_problems / (n_problems - 1))


def _compare_predictions(
    pool: LabeledPool, residuals: Floats, weights: Floats, size: float, problem: Ints
) -> tuple[float, Floats]:
    """Return the mean residual over the pool minus that over labeled traces, and its influence by problem."""
    per_case = size / float(weights.sum())  # mean cases of a trace
    in_pool = pool.in_pool / pool.in_pool.sum()
    share = weights / weights.sum()
    pool_mean, labeled_mean = float(in_pool @ residuals), float(share @ residuals)
    influence = in_pool * (residuals - pool_mean) - share * (residuals - labeled_mean)
    return (pool_mean - labeled_mean) / per_case, np.bincount(problem, weights=influence) / per_case


def _count_freedom(influence: Floats, most: int) -> float:
    """Return the degrees of freedom of a variance: fewer if a few problems with large weights dominate it.

    F. E. Satterthwaite (1946), doi:10.2307/3002019, with the variance of the estimate itself from fourth moments.
    """
    squares = influence**2
    total = float(squares.sum())
    spread = float(squares @ squares) - total**2 / max(most + 1, 1)
    return float(most) if spread <= 0 else max(min(2 * total**2 / spread, float(most)), 2.0)


def _share_interval(value: float, error: float, df: float, level: float) -> Interval:
    quantile = t_quantile(p=(1 + level) / 2, df=df)
    method = "sandwich-t by problem"
    if not 0 < value < 1 or error == 0:
        return Interval(
            max(min(value, 1.0) - quantile * error, 0.0), min(max(value, 0.0) + quantile * error, 1.0), level, method
        )
    middle, half = math.log(value / (1 - value)), quantile * error / (value * (1 - value))
    low, high = (1 / (1 + math.exp(-min(max(end, -700.0), 700.0))) for end in (middle - half, middle + half))
    return Interval(low, high, level, method)
