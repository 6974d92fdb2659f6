"""Intervals: the jackknife against its formula, quantiles against scipy and printed tables, and the bootstrap."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from stats import agreement, estimation, intervals, rating_patterns
from stats.arrays import Floats
from stats.estimates import Reason
from stats.estimation import Statistic
from stats.rating_patterns import RatingPatterns
from tests.stats import published_tables

# (problem, how many ratings -1, 0, +1 a unit has, units). Problems 1 and 2 are equal; 7 and 8 have no pairs.
ROWS = [
    *[(0, (2, 0, 0), 3), (0, (1, 0, 1), 1)],
    *[(1, (0, 0, 2), 4), (1, (0, 1, 1), 1)],
    *[(2, (0, 0, 2), 4), (2, (0, 1, 1), 1)],
    *[(3, (0, 2, 0), 1), (3, (1, 1, 0), 2), (3, (0, 0, 3), 2)],
    *[(4, (2, 0, 0), 5)],
    *[(5, (0, 1, 2), 2), (5, (0, 2, 0), 2)],
    *[(6, (3, 0, 0), 1), (6, (1, 0, 1), 3), (6, (0, 0, 2), 6)],
    *[(7, (0, 1, 0), 9), (8, (1, 0, 0), 4)],
]
READ_TWICE = 7
FLOORS = {name: 0.0 if name == "pairwise_agreement" else -1.0 for name in agreement.STATISTIC_NAMES}


def value_of(name: str, made: RatingPatterns) -> float:
    found = agreement.estimate_step_statistics(made, with_bootstrap=False)[name].value
    assert found is not None
    return found


def written_out(name: str, level: float) -> tuple[float, float]:
    """Recompute the statistic without each problem."""
    left = [
        value_of(name, rating_patterns.patterns_from_rows(row for row in ROWS if row[0] != one))
        for one in range(READ_TWICE)
    ]

    def scale(value: float) -> float:
        return math.atanh(2 * value - 1 if FLOORS[name] == 0 else value)

    turned = [scale(value) for value in left]
    mean = sum(turned) / READ_TWICE
    spread = math.sqrt((READ_TWICE - 1) / READ_TWICE * sum((each - mean) ** 2 for each in turned))
    half = float(stats.t.ppf((1 + level) / 2, READ_TWICE - 1)) * spread
    middle = scale(value_of(name, rating_patterns.patterns_from_rows(ROWS)))
    ends = [math.tanh(middle + sign * half) for sign in (-1, 1)]
    low, high = [(end + 1) / 2 for end in ends] if FLOORS[name] == 0 else ends
    return low, high


@pytest.mark.parametrize("level", [0.95, 0.8])
@pytest.mark.parametrize("name", agreement.STATISTIC_NAMES)
def test_interval_is_the_jackknife_written_out(name: str, level: float) -> None:
    found = agreement.estimate_step_statistics(
        rating_patterns.patterns_from_rows(ROWS), level=level, with_bootstrap=False
    )[name]
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx(written_out(name, level), abs=1e-9)
    assert found.counts.problems == READ_TWICE


def test_value_includes_units_rated_once() -> None:
    """Gwet's chance term uses single ratings, so problems without pairs always stay in the sums."""
    total = published_tables.sum_all_pairs(rating_patterns.patterns_from_rows(ROWS))
    alone = published_tables.sum_all_pairs(
        rating_patterns.patterns_from_rows(row for row in ROWS if row[0] < READ_TWICE)
    )
    assert value_of("gwet_ac1", rating_patterns.patterns_from_rows(ROWS)) == pytest.approx(
        float(agreement.gwet_ac1(total))
    )
    assert float(agreement.gwet_ac1(total)) != pytest.approx(float(agreement.gwet_ac1(alone)))


def test_value_without_a_fisher_scale_has_a_plain_interval() -> None:
    """One problem of ten disagrees: without it the share is 1, which has no Fisher scale."""
    rows = [*[(problem, (0, 0, 2), 3) for problem in range(9)], (9, (1, 0, 1), 1)]
    found = agreement.estimate_step_statistics(rating_patterns.patterns_from_rows(rows), with_bootstrap=False)[
        "pairwise_agreement"
    ]
    left = [24 / 25] * 9 + [1.0]
    spread = math.sqrt(9 / 10 * sum((each - sum(left) / 10) ** 2 for each in left))
    half = float(stats.t.ppf(0.975, 9)) * spread
    assert found.interval is not None
    assert [found.interval.low, found.interval.high] == pytest.approx([27 / 28 - half, 1.0])


def test_one_category_leaves_alpha_undefined_and_ac1_at_one() -> None:
    """A scale of one value, as in a file with equal labels."""
    rows = [(problem, (2,), 3) for problem in range(6)]
    found = agreement.estimate_step_statistics(
        rating_patterns.patterns_from_rows(rows, values=(1.0,)), with_bootstrap=False
    )
    assert (found["alpha_nominal"].value, found["alpha_nominal"].reason) == (None, Reason.NO_VARIATION)
    assert found["gwet_ac1"].value == 1.0


@settings(max_examples=150, deadline=None)
@given(st.floats(1e-5, 1 - 1e-5), st.integers(1, 100_000))
def test_t_quantile_equals_scipy(p: float, df: int) -> None:
    assert intervals.t_quantile(p=p, df=df) == pytest.approx(stats.t.ppf(p, df), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("df", "printed"), [(1, 12.706), (4, 2.776), (7, 2.365), (14, 2.145), (29, 2.045), (59, 2.001)]
)
def test_t_quantile_equals_the_printed_table(df: int, printed: float) -> None:
    assert round(intervals.t_quantile(p=0.975, df=df), 3) == printed


@pytest.mark.fault
@settings(max_examples=100, deadline=None)
@given(st.integers(0, 400), st.integers(0, 400), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_intervals_of_a_share_equal_scipy(right: int, wrong: int, level: float) -> None:
    n = right + wrong
    if n == 0:
        return
    exact = stats.binomtest(right, n).proportion_ci(level, method="exact")
    score = stats.binomtest(right, n).proportion_ci(level, method="wilson")
    mine, wilson = (
        intervals.clopper_pearson_interval(right=right, n=n, level=level),
        intervals.wilson_interval(right=right, n=n, level=level),
    )
    assert (mine.low, mine.high) == pytest.approx((exact.low, exact.high), abs=1e-8)
    assert (wilson.low, wilson.high) == pytest.approx((score.low, score.high), abs=1e-9)


def test_share_of_zero_cases_is_unknown() -> None:
    assert (intervals.wilson_interval(right=0, n=0).low, intervals.wilson_interval(right=0, n=0).high) == (0.0, 1.0)
    exact = intervals.clopper_pearson_interval(right=0, n=0)
    assert (exact.low, exact.high) == (0.0, 1.0)


@pytest.mark.parametrize(("right", "n"), [(-1, 3), (4, 3)])
def test_impossible_share_is_rejected(right: int, n: int) -> None:
    with pytest.raises(ValueError, match=str(right)):
        intervals.wilson_interval(right=right, n=n)


@pytest.mark.parametrize(("p", "df"), [(0.5, 0), (1.0, 3), (0.0, 3)])
def test_t_quantile_rejects_invalid_arguments(p: float, df: int) -> None:
    with pytest.raises(ValueError, match=str(df)):
        intervals.t_quantile(p=p, df=df)


def draws(copies: list[int]) -> Floats:
    """Return resampled sums of two problems per kind, with a column of ones that counts the problems of a draw."""
    kinds = np.column_stack([np.arange(len(copies)), np.ones(len(copies))]).astype(np.float64)
    found = intervals.draw_resamples(sums=kinds, copies=np.array(copies), rest=np.array([100.0, 0.5]))
    assert not isinstance(found, Reason)
    return found


@pytest.mark.parametrize("copies", [[1] * 40, [30, 10, 80]])
def test_bootstrap_draws_as_many_problems_as_there_are_and_keeps_the_rest(copies: list[int]) -> None:
    found = draws(copies)
    n, kinds = sum(copies), np.arange(len(copies))
    assert (found[:, 1] == n + 0.5).all()
    mean = float(np.dot(copies, kinds) / n)
    variance = float(np.dot(copies, (kinds - mean) ** 2) / n)
    assert found[:, 0].mean() == pytest.approx(100 + n * mean, abs=5 * math.sqrt(n * variance / 1000))
    assert found[:, 0].std() == pytest.approx(math.sqrt(n * variance), rel=0.1)


def test_bootstrap_is_drawn_from_thirty_problems_on() -> None:
    few = intervals.draw_resamples(sums=np.ones((29, 1)), copies=np.ones(29, dtype=np.int64), rest=np.zeros(1))
    assert few == Reason.FEW_FOR_BOOTSTRAP
    assert len(draws([1] * 30)) == 1000


@pytest.mark.parametrize(("level", "ends"), [(0.95, (0.025, 0.975)), (0.8, (0.1, 0.9))])
def test_bootstrap_interval_runs_between_the_quantiles_of_the_draws(level: float, ends: tuple[float, float]) -> None:
    copied = [(problem * 10 + row[0], row[1], row[2]) for problem in range(6) for row in ROWS]
    pairs, sample = estimation.sample_from_patterns(rating_patterns.patterns_from_rows(copied))

    def share(matrix: Floats) -> Floats:
        return agreement.pairwise_agreement(pairs.put(matrix))

    found = estimation.estimate(statistic=Statistic(share, 0.0, Reason.NO_PAIRS), sample=sample, level=level)
    drawn = intervals.draw_resamples(sums=sample.matrix, copies=sample.copies, rest=sample.rest)
    assert not isinstance(drawn, Reason)
    assert found.bootstrap is not None
    expected = np.quantile(share(drawn), ends)
    assert (found.bootstrap.low, found.bootstrap.high) == pytest.approx(tuple(expected))


@pytest.mark.fault
def test_bootstrap_of_very_many_problems_draws_groups_of_them() -> None:
    """Every problem is in a group, each draw has as many problems as the sample, and the spread is that of problems."""
    sums = np.random.default_rng(3).gamma(2.0, size=(3 * intervals.MAX_GROUPS, 2))
    copies = np.random.default_rng(4).integers(1, 4, len(sums))
    found = intervals.draw_resamples(sums=sums, copies=copies, rest=np.array([5.0, 0.0]))
    assert not isinstance(found, Reason)
    total, problems = copies @ sums, np.repeat(sums, copies, axis=0)
    spread = np.sqrt(len(problems)) * problems.std(axis=0)
    assert found.mean(axis=0) == pytest.approx([total[0] + 5, total[1]], abs=5 * spread.max() / math.sqrt(1000))
    assert found.std(axis=0) == pytest.approx(spread, rel=0.1)
    together = np.cov(problems.T)[0, 1] * len(problems)
    assert np.cov(found.T)[0, 1] == pytest.approx(together, abs=0.15 * spread.prod())


@pytest.mark.parametrize(
    ("counts", "low", "high"),
    [
        ((56, 70, 48, 80), 0.0524, 0.3339),
        ((9, 10, 3, 10), 0.1705, 0.8090),
        ((5, 56, 0, 29), -0.0381, 0.1926),
        ((10, 10, 0, 10), 0.6075, 1.0),
    ],
)
def test_difference_interval_is_as_published(counts: tuple[int, int, int, int], low: float, high: float) -> None:
    """R. G. Newcombe (1998), table II, method 10."""
    right, n, other_right, other_n = counts
    interval = intervals.difference_interval(right=right, n=n, other_right=other_right, other_n=other_n)
    assert [interval.low, interval.high] == pytest.approx([low, high], abs=6e-5)
