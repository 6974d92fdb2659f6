"""Agreement on the first error: same place, within one step, and kappa on whether there is an error at all.

    exact      Σ pairs with the same place (a step, or none) / Σ pairs
    within ±1  the same, also counting neighboring steps; "none" is not a step and has no neighbors
    has-error  Fleiss' kappa over {some error, none}, each trace a unit (Scott's pi for pairs)

Only pairs of uncensored reports are compared. A censored report can only be seen to disagree (when the other report has
an error among the steps it passed), so including it would bias agreement downwards. Such pairs are counted separately.

Places of the first error as the unit of process supervision: H. Lightman et al. (2023), arXiv:2305.20050; C. Zheng et
al. (2024), "ProcessBench", arXiv:2412.06559. W. A. Scott (1955), doi:10.1086/266577; J. L. Fleiss (1971),
doi:10.1037/h0031619.
"""

from dataclasses import dataclass

import numpy as np

from stats import coefficients, estimation
from stats.arrays import Floats, divide, sum_by
from stats.estimates import Estimate, Reason
from stats.estimation import ClusterSample, Statistic
from stats.first_error_reports import ReportArrays
from stats.rating_patterns import RatingPatterns, merge_equal_patterns


@dataclass(frozen=True)
class FirstErrorAgreement:
    exact: Estimate
    within_one: Estimate
    has_error_kappa: Estimate
    pairs: int
    pairs_with_a_censored_report: int


def estimate_agreement(
    reports: ReportArrays, *, level: float = 0.95, seed: int = 0, with_bootstrap: bool = True
) -> FirstErrorAgreement:
    sample = _pair_sample(reports)
    compared = int(sample.copies @ sample.matrix[:, 2]) // 2
    shares = {"exact": _share(0), "within_one": _share(1)}
    estimates = estimation.estimate_all(
        statistics=shares, sample=sample, level=level, seed=seed, with_bootstrap=with_bootstrap
    )
    return FirstErrorAgreement(
        exact=estimates["exact"],
        within_one=estimates["within_one"],
        has_error_kappa=_estimate_has_error_kappa(reports, level, seed, with_bootstrap),
        pairs=compared,
        pairs_with_a_censored_report=_count_pairs(reports) - compared,
    )


def _pair_sample(reports: ReportArrays) -> ClusterSample:
    """Return per problem the ordered pairs that agree, that agree within one step, and all."""
    n_uncensored = np.bincount(reports.traces[~reports.is_censored], minlength=reports.n_traces)
    rows = np.column_stack([_count_agreeing_pairs(reports), n_uncensored * (n_uncensored - 1)])
    matrix = sum_by(groups=reports.problems, rows=rows, n_groups=_n_problems(reports))
    return estimation.sample_from_sums(
        matrix,
        copies=np.ones(len(matrix), dtype=np.int64),
        is_comparable=matrix[:, 2] > 0,
        units=int((n_uncensored >= 1).sum()),
        pairable=int((n_uncensored >= 2).sum()),
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


def _share(column: int) -> Statistic:
    return Statistic(lambda matrix: divide(matrix[..., column], matrix[..., 2]), 0.0, Reason.NO_PAIRS)


def _estimate_has_error_kappa(reports: ReportArrays, level: float, seed: int, with_bootstrap: bool) -> Estimate:
    answers = (reports.says_none, reports.says_error)
    votes = [np.bincount(reports.traces[answer], minlength=reports.n_traces) for answer in answers]
    patterns = RatingPatterns(
        values=(0.0, 1.0),
        counts=np.column_stack(votes),
        units=np.ones(reports.n_traces, dtype=np.int64),
        problems=reports.problems,
        copies=np.ones(_n_problems(reports), dtype=np.int64),
    )
    sums, sample = estimation.sample_from_patterns(merge_equal_patterns(patterns))

    kappa = Statistic(lambda matrix: coefficients.fleiss_kappa(sums.put(matrix)), -1.0, Reason.NO_VARIATION)
    return estimation.estimate_all(
        statistics={"": kappa}, sample=sample, level=level, seed=seed, with_bootstrap=with_bootstrap
    )[""]


def _n_problems(reports: ReportArrays) -> int:
    return int(reports.problems.max()) + 1 if reports.n_traces else 0


def _count_pairs(reports: ReportArrays) -> int:
    n_reports = np.bincount(reports.traces, minlength=reports.n_traces)
    return int((n_reports * (n_reports - 1)).sum()) // 2
