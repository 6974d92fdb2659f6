"""Agreement between raters: chance-corrected coefficients, their estimates, and agreement on the first error.

No single coefficient is enough: when raters stop at the first error, the same judgments move percent agreement and AC1
up and alpha down. So each result has all statistics, with intervals, counts, and a reason for each missing value. The
coefficients of steps are functions of pair sums (`PairSums`).

Krippendorff's alpha, for any number of raters with missing ratings:

    o_ck = Σ_{u: m_u ≥ 2} n_uc (n_uk - [c = k]) / (m_u - 1),   n_c = Σ_k o_ck,   n = Σ_c n_c
    alpha = 1 - (n - 1) Σ o_ck d²(c, k) / Σ n_c n_k d²(c, k)

    nominal  d² = [c ≠ k]
    ordinal  d² = (Σ_{g = c..k} n_g - (n_c + n_k) / 2)², the squared distance of mid-ranks
    interval d² = (c - k)²
    ratio    d² = ((c - k) / (c + k))²

Units with one rating do not enter alpha. If all ratings are equal, alpha is 0/0. The ordinal distance is that of the
book; some packages print another number under the same name. K. Krippendorff (2011), "Computing Krippendorff's
Alpha-Reliability", https://repository.upenn.edu/asc_papers/43; (2019) "Content Analysis", 4th ed., ch. 12,
doi:10.4135/9781071878781.

Gwet's AC1 (identity weights) and AC2, which do not collapse when one category prevails:

    p_a = mean over units with m ≥ 2 of Σ_k n_uk (r*_uk - 1) / (m_u (m_u - 1)),   r*_uk = Σ_l w_kl n_ul
    π_k = mean over units with m ≥ 1 of n_uk / m_u,   p_e = T_w Σ π_k (1 - π_k) / (K (K - 1)),   T_w = Σ w_kl
    AC  = (p_a - p_e) / (1 - p_e)

AC1 is lenient with raters who disagree on a rare category, so read it together with alpha. K. L. Gwet (2008),
"Computing inter-rater reliability and its variance in the presence of high agreement", doi:10.1348/000711006X126600;
AC2 in the "Handbook of Inter-Rater Reliability", 4th ed. (2014).

Kappas: (p_o - p_e) / (1 - p_e), which differ in the chance term. Cohen keeps the marginals of two named raters:
J. Cohen (1960), doi:10.1177/001316446002000104, weighted (1968), doi:10.1037/h0026256. Fleiss pools the shares of all
raters: J. L. Fleiss (1971), doi:10.1037/h0031619. Brennan and Prediger take every category as equally likely:
R. L. Brennan, D. J. Prediger (1981), doi:10.1177/001316448104100307.

First error, over pairs of uncensored reports:

    exact      Σ pairs with the same place (a step, or none) / Σ pairs
    within ±1  the same, also counting neighboring steps; "none" is not a step and has no neighbors
    has-error  Fleiss' kappa over {some error, none}, each trace a unit (Scott's pi for pairs)

A censored report can only be seen to disagree (when the other report has an error among the steps it passed), so
including it would bias agreement downward. Such pairs are counted separately.

Places of the first error as the unit of process supervision: H. Lightman et al. (2023), arXiv:2305.20050; C. Zheng et
al. (2024), "ProcessBench", arXiv:2412.06559; W. A. Scott (1955), doi:10.1086/266577.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from stats import estimation, rating_patterns
from stats.arrays import Floats, divide, sum_by
from stats.estimates import Estimate, Reason
from stats.estimation import ClusterSample, Statistic
from stats.first_error_reports import ReportArrays
from stats.rating_patterns import PairSums, RatingPatterns

# Krippendorff's alpha


def alpha_nominal(sums: PairSums) -> Floats:
    return _alpha(sums, 1.0 - np.eye(sums.k))


def alpha_ordinal(sums: PairSums) -> Floats:
    marginals = sums.coincidences.sum(axis=-1)
    mid_ranks = marginals.cumsum(axis=-1) - marginals / 2
    return _alpha(sums, (mid_ranks[..., :, None] - mid_ranks[..., None, :]) ** 2)


def masi_distances(sets: Sequence[frozenset[str]]) -> Floats:
    """Return the MASI distance between each two of these sets: 1 - J * M.

    J is the Jaccard index. M is 1 for equal sets, 2/3 if one contains the other, 1/3 if they overlap, else 0. For sets
    of one member it is the nominal distance. R. Passonneau (2006), "Measuring agreement on set-valued items (MASI) for
    semantic and pragmatic annotation", LREC.
    """
    return np.array([[1.0 - _masi_similarity(one, other) for other in sets] for one in sets])


def _masi_similarity(one: frozenset[str], other: frozenset[str]) -> float:
    if one == other:
        return 1.0
    common = one & other
    share = 2 / 3 if common in (one, other) else 1 / 3
    return share * len(common) / len(one | other)


def alpha_interval(sums: PairSums) -> Floats:
    # Alpha is a quotient of distances, so their unit cancels out.
    return _alpha(sums, _relative_distances(sums.values) ** 2)


def alpha_ratio(sums: PairSums) -> Floats:
    values = np.array(sums.values)
    total = values[:, None] + values[None, :]
    return _alpha(sums, np.nan_to_num(divide(values[:, None] - values[None, :], total)) ** 2)


def _alpha(sums: PairSums, distance: Floats) -> Floats:
    coincidences = sums.coincidences
    marginals = coincidences.sum(axis=-1)
    n = marginals.sum(axis=-1)
    observed = (coincidences * distance).sum(axis=(-2, -1))
    expected = (marginals[..., :, None] * marginals[..., None, :] * distance).sum(axis=(-2, -1))
    # Marginals are whole numbers up to rounding. Counting the nonzero ones detects variation even if two values are
    # so close that `expected` is tiny.
    is_varied = ((marginals > 0.5).sum(axis=-1) > 1) & (expected > 0)
    disagreement = np.full(expected.shape, np.nan)
    np.divide((n - 1) * observed, expected, out=disagreement, where=is_varied)
    return 1.0 - disagreement


# Gwet's AC1 and AC2


def gwet_ac1(sums: PairSums) -> Floats:
    return gwet_ac2(sums, np.eye(sums.k))


def gwet_ac2(sums: PairSums, weight: Floats) -> Floats:
    if sums.k < 2:
        return np.where(sums.all_pairs > 0, 1.0, np.nan)
    observed = observed_agreement(sums, weight)
    shares = divide(sums.shares, sums.shares.sum(axis=-1, keepdims=True))
    spread = (shares * (1 - shares)).sum(axis=-1)
    expected = float(weight.sum()) * spread / (sums.k * (sums.k - 1))
    return divide(observed - expected, 1 - expected)


# Kappas and percent agreement


def cohen_kappa(table: Floats, weight: Floats) -> Floats:
    """Return kappa of tables (..., K, K): counts of rating pairs, rows one rater, columns the other."""
    n = table.sum(axis=(-2, -1))
    observed = divide((table * weight).sum(axis=(-2, -1)), n)
    rows, columns = table.sum(axis=-1), table.sum(axis=-2)
    products = rows[..., :, None] * columns[..., None, :]
    expected = divide((products * weight).sum(axis=(-2, -1)), n * n)
    return divide(observed - expected, 1 - expected)


def fleiss_kappa(sums: PairSums) -> Floats:
    observed = observed_agreement(sums, np.eye(sums.k))
    pairs = sums.unit_pairs.sum(axis=-1)
    shares = divide(pairs, pairs.sum(axis=-1, keepdims=True))
    expected = (shares**2).sum(axis=-1)
    return divide(observed - expected, 1 - expected)


def brennan_prediger_kappa(sums: PairSums) -> Floats:
    observed = observed_agreement(sums, np.eye(sums.k))
    if sums.k < 2:
        return np.full_like(observed, np.nan)
    return (observed - 1 / sums.k) / (1 - 1 / sums.k)


def pairwise_agreement(sums: PairSums) -> Floats:
    """Return the share of equal pairs among all pairs of ratings of one unit."""
    return divide(sums.agreeing_pairs, sums.all_pairs)


def observed_agreement(sums: PairSums, weight: Floats) -> Floats:
    """Return p_a: the mean over pairable units of the weighted share of agreeing pairs."""
    pairs = sums.unit_pairs
    return divide((pairs * weight).sum(axis=(-2, -1)), pairs.sum(axis=(-2, -1)))


# Weights of partial agreement: 1 on the diagonal, less with distance. K. L. Gwet (2014), "Handbook of Inter-Rater
# Reliability", 4th ed., ch. 3.


def linear_weights(values: Sequence[float]) -> Floats:
    return 1.0 - _relative_distances(values)


def quadratic_weights(values: Sequence[float]) -> Floats:
    return 1.0 - _relative_distances(values) ** 2


def ordinal_weights(values: Sequence[float]) -> Floats:
    """Return 1 - C(d + 1, 2) / max with d the distance of ranks."""
    ranks = np.argsort(np.argsort(values))
    distance = np.abs(ranks[:, None] - ranks[None, :])
    pairs: Floats = distance * (distance + 1) / 2.0
    return 1.0 - pairs / max(float(pairs.max(initial=0.0)), 1.0)


def _relative_distances(values: Sequence[float]) -> Floats:
    """Return distances as shares of the whole scale."""
    scaled = np.array(values, dtype=np.float64)
    scaled /= float(np.abs(scaled).max(initial=0.0)) or 1.0  # the distance of two huge numbers can overflow a float
    distance = np.abs(scaled[:, None] - scaled[None, :])
    widest = float(distance.max(initial=0.0))
    return distance / widest if widest > 0 else distance


# Estimates of the agreement on steps that are always shown together

_STATISTICS: dict[str, tuple[Callable[[PairSums], Floats], float]] = {
    "alpha_nominal": (alpha_nominal, -1.0),
    "alpha_ordinal": (alpha_ordinal, -1.0),
    "alpha_interval": (alpha_interval, -1.0),
    "gwet_ac1": (gwet_ac1, -1.0),
    "gwet_ac2_quadratic": (lambda sums: gwet_ac2(sums, quadratic_weights(sums.values)), -1.0),
    "fleiss_kappa": (fleiss_kappa, -1.0),
    "pairwise_agreement": (pairwise_agreement, 0.0),
}
STATISTIC_NAMES = tuple(_STATISTICS)


def estimate_step_statistics(
    patterns: RatingPatterns,
    *,
    names: Sequence[str] = STATISTIC_NAMES,
    level: float = 0.95,
    with_bootstrap: bool = True,
) -> dict[str, Estimate]:
    """Estimate the named statistics of these patterns."""
    sums, sample = estimation.sample_from_patterns(patterns)
    statistics = {name: _statistic(sums, *_STATISTICS[name]) for name in names}
    return estimation.estimate_all(statistics=statistics, sample=sample, level=level, with_bootstrap=with_bootstrap)


def estimate_set_alpha(patterns: RatingPatterns, sets: Sequence[frozenset[str]]) -> Estimate:
    """Estimate alpha with the MASI distance. The values of the patterns are places in `sets`."""
    distances = masi_distances(sets)
    sums, sample = estimation.sample_from_patterns(patterns)
    statistic = _statistic(sums, lambda each: _alpha(each, distances), -1.0)
    return estimation.estimate_all(statistics={"alpha": statistic}, sample=sample, with_bootstrap=False)["alpha"]


def label_shares(patterns: RatingPatterns) -> dict[float, float]:
    """Return the share of each value among all ratings."""
    totals = patterns.all_units @ patterns.counts
    n_ratings = max(int(totals.sum()), 1)
    return {value: int(count) / n_ratings for value, count in zip(patterns.values, totals, strict=True)}


def _statistic(sums: PairSums, coefficient: Callable[[PairSums], Floats], floor: float) -> Statistic:
    return Statistic(lambda matrix: np.asarray(coefficient(sums.put(matrix))), floor, Reason.NO_VARIATION)


# Agreement on the first error


@dataclass(frozen=True)
class FirstErrorAgreement:
    exact: Estimate
    within_one: Estimate
    has_error_kappa: Estimate
    pairs: int
    pairs_with_a_censored_report: int


def estimate_first_error_agreement(reports: ReportArrays, *, with_bootstrap: bool = True) -> FirstErrorAgreement:
    sample = _first_error_sample(reports)
    compared = int(sample.copies @ sample.matrix[:, 2]) // 2
    shares = {name: estimation.share_statistic(n, 2, Reason.NO_PAIRS) for n, name in enumerate(("exact", "within_one"))}
    n_reports = np.bincount(reports.traces, minlength=reports.n_traces)
    return FirstErrorAgreement(
        **estimation.estimate_all(statistics=shares, sample=sample, with_bootstrap=with_bootstrap),
        has_error_kappa=_estimate_has_error_kappa(reports, with_bootstrap),
        pairs=compared,
        pairs_with_a_censored_report=int((n_reports * (n_reports - 1)).sum()) // 2 - compared,
    )


def _first_error_sample(reports: ReportArrays) -> ClusterSample:
    """Return per problem the ordered pairs that agree, that agree within one step, and all."""
    n_uncensored = np.bincount(reports.traces[~reports.is_censored], minlength=reports.n_traces)
    rows = np.column_stack([_count_agreeing_pairs(reports), n_uncensored * (n_uncensored - 1)])
    matrix = sum_by(groups=reports.problems, rows=rows, n_groups=reports.n_problems)
    return estimation.sample_from_sums(
        matrix,
        is_comparable=matrix[:, 2] > 0,
        units=int((n_uncensored >= 1).sum()),
        pairable=int((n_uncensored >= 2).sum()),
        nothing=Reason.NO_PAIRS,
    )


def _count_agreeing_pairs(reports: ReportArrays) -> Floats:
    """Return per trace the ordered pairs of uncensored reports with the same place, and with the same or a neighbor."""
    uncensored = ~reports.is_censored
    stride = int(reports.lengths.max(initial=0)) + 2  # keys of two traces are never adjacent
    keys, votes = np.unique(reports.traces[uncensored] * stride + reports.ends[uncensored], return_counts=True)
    traces, ends = np.divmod(keys, stride)
    has_neighbor = (np.diff(keys, append=-1) == 1) & (ends + 1 < reports.lengths[traces])  # "none" is no neighbor
    same = votes * (votes - 1)
    within = same + 2 * votes * np.append(votes[1:], 0) * has_neighbor
    rows = np.column_stack([same, within]).astype(np.float64)
    return sum_by(groups=traces, rows=rows, n_groups=reports.n_traces)


def _estimate_has_error_kappa(reports: ReportArrays, with_bootstrap: bool) -> Estimate:
    answers = (reports.says_none, reports.says_error)
    patterns = RatingPatterns(
        values=(0.0, 1.0),
        counts=np.column_stack([np.bincount(reports.traces[each], minlength=reports.n_traces) for each in answers]),
        units=np.ones(reports.n_traces, dtype=np.int64),
        problems=reports.problems,
        copies=np.ones(reports.n_problems, dtype=np.int64),
    )
    sums, sample = estimation.sample_from_patterns(rating_patterns.merge_equal_patterns(patterns))
    kappa = _statistic(sums, fleiss_kappa, -1.0)
    return estimation.estimate(statistic=kappa, sample=sample, with_bootstrap=with_bootstrap)
