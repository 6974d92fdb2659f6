"""Quantiles and intervals of shares against scipy.stats and printed tables."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from stats import intervals


@settings(max_examples=150, deadline=None)
@given(st.floats(1e-5, 1 - 1e-5), st.integers(1, 100_000))
def test_t_quantile_equals_scipy(p: float, df: int) -> None:
    assert intervals.t_quantile(p=p, df=df) == pytest.approx(stats.t.ppf(p, df), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("df", "printed"), [(1, 12.706), (4, 2.776), (7, 2.365), (14, 2.145), (29, 2.045), (59, 2.001)]
)
def test_t_quantile_equals_the_printed_table(df: int, printed: float) -> None:
    assert round(intervals.t_quantile(p=0.975, df=df), 3) == printed


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
