"""Agreement on where the first error is: exact, within one step, and kappa on whether there is one at all.

    exact      Σ pairs with the same place (a step, or none) / Σ pairs
    within ±1  the same, with neighbouring steps counting too; "none" is no step and has no neighbours
    has-error  Fleiss' kappa over {some error, none}, each trace a unit (Scott's pi for pairs)

Only pairs of uncensored reports are compared. A censored report could only ever be caught disagreeing (the other saw an
error among the steps that it passed), so counting it would pull agreement down; such pairs are counted beside.

Places of the first error as the unit of process supervision: H. Lightman et al. (2023), arXiv:2305.20050; C. Zheng et
al. (2024), "ProcessBench", arXiv:2412.06559. W. A. Scott (1955), doi:10.1086/266577; J. L. Fleiss (1971),
doi:10.1037/h0031619.
"""

from dataclasses import dataclass

import numpy as np

from stats import estimation, kappa
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
    found = estimation.estimates(
        statistics=shares, sample=sample, level=level, seed=seed, with_bootstrap=with_bootstrap
    )
    return FirstErrorAgreement(
        exact=found["exact"],
        within_one=found["within_one"],
        has_error_kappa=_estimate_has_error_kappa(reports, level, seed, with_bootstrap),
        pairs=compared,
        pairs_with_a_censored_report=_count_pairs(reports) - compared,
    )


def _pair_sample(reports: ReportArrays) -> ClusterSample:
    """Per problem: ordered pairs that agree, that agree within one step, and all."""
    told = np.bincount(reports.traces[~reports.is_censored], minlength=reports.n_traces)
    rows = np.column_stack([_count_agreeing_pairs(reports), told * (told - 1)])
    matrix = sum_by(groups=reports.problems, rows=rows, n_groups=_n_problems(reports))
    return estimation.sample_from_sums(
        matrix,
        copies=np.ones(len(matrix), dtype=np.int64),
        is_comparable=matrix[:, 2] > 0,
        units=int((told >= 1).sum()),
        pairable=int((told >= 2).sum()),
    )


def _count_agreeing_pairs(reports: ReportArrays) -> Floats:
    """Per trace: ordered pairs of uncensored reports that name the same place, and the same or the next step."""
    told = ~reports.is_censored
    apart = int(reports.lengths.max(initial=0)) + 2  # so that the places of two traces are never next to each other
    named, votes = np.unique(reports.traces[told] * apart + reports.ends[told], return_counts=True)
    traces, ends = np.divmod(named, apart)
    is_beside = (np.diff(named, append=-1) == 1) & (ends + 1 < reports.lengths[traces])  # the next is a step, not none
    same = votes * (votes - 1)
    within = same + 2 * votes * np.append(votes[1:], 0) * is_beside
    rows = np.column_stack([same, within]).astype(np.float64)
    return sum_by(groups=traces, rows=rows, n_groups=reports.n_traces)


def _share(column: int) -> Statistic:
    def of(matrix: Floats) -> Floats:
        return divide(matrix[..., column], matrix[..., 2])

    return Statistic(of, 0.0, Reason.NO_PAIRS)


def _estimate_has_error_kappa(reports: ReportArrays, level: float, seed: int, with_bootstrap: bool) -> Estimate:
    told = (reports.says_none, reports.says_error)
    says = [np.bincount(reports.traces[those], minlength=reports.n_traces) for those in told]
    counted = RatingPatterns(
        values=(0.0, 1.0),
        counts=np.column_stack(says),
        units=np.ones(reports.n_traces, dtype=np.int64),
        problems=reports.problems,
        copies=np.ones(_n_problems(reports), dtype=np.int64),
    )
    pairs, sample = estimation.sample_from_patterns(merge_equal_patterns(counted))

    def kappa_of_matrix(matrix: Floats) -> Floats:
        return kappa.fleiss_kappa(pairs.put(matrix))

    statistics = {"kappa": Statistic(kappa_of_matrix, -1.0, Reason.NO_VARIATION)}
    return estimation.estimates(
        statistics=statistics, sample=sample, level=level, seed=seed, with_bootstrap=with_bootstrap
    )["kappa"]


def _n_problems(reports: ReportArrays) -> int:
    return int(reports.problems.max()) + 1 if reports.n_traces else 0


def _count_pairs(reports: ReportArrays) -> int:
    made = np.bincount(reports.traces, minlength=reports.n_traces)
    return int((made * (made - 1)).sum()) // 2
