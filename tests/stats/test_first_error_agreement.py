"""First-error agreement against counting pairs one by one, and what censoring does to it."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stats import first_error_agreement, first_error_reports
from stats.estimates import Reason
from stats.first_error_reports import ReportArrays

Row = tuple[int, int, int, bool]  # trace, rater, end, censored


def made(rows: list[Row], lengths: list[int], problems: list[int] | None = None) -> ReportArrays:
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    traces, raters, ends = (np.array(column, dtype=np.int64) for column in columns[:3])
    n = len(lengths)
    return ReportArrays(
        traces=traces,
        raters=raters,
        ends=ends,
        is_censored=np.array(columns[3], dtype=np.bool_),
        lengths=np.array(lengths, dtype=np.int64),
        problems=np.arange(n) if problems is None else np.array(problems),
        domains=np.zeros(n, dtype=np.int64),
    )


@st.composite
def some_reports(draw: Any) -> tuple[list[Row], list[int]]:
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=7))
    rows = [
        (trace, rater, draw(st.integers(0, lengths[trace])), draw(st.integers(0, 4)) == 0)
        for trace in range(len(lengths))
        for rater in range(draw(st.integers(0, 4)))
    ]
    return rows, lengths


def pairs_one_by_one(rows: list[Row], lengths: list[int]) -> tuple[int, int, int]:
    exact = near = n = 0
    for first, second in itertools.combinations(rows, 2):
        if first[0] != second[0] or first[3] or second[3]:
            continue
        none = lengths[first[0]]
        n += 1
        exact += first[2] == second[2]
        beside = abs(first[2] - second[2]) == 1 and none not in (first[2], second[2])
        near += first[2] == second[2] or beside
    return exact, near, n


@settings(max_examples=80, deadline=None)
@given(some_reports())
def test_agreement_equals_counting_pairs_one_by_one(case: tuple[list[Row], list[int]]) -> None:
    rows, lengths = case
    exact, near, n = pairs_one_by_one(rows, lengths)
    found = first_error_agreement.estimate_agreement(made(rows, lengths))
    assert found.pairs == n
    if n:
        assert found.exact.value == pytest.approx(exact / n)
        assert found.within_one.value == pytest.approx(near / n)
    else:
        assert (found.exact.reason, found.within_one.reason) == (Reason.NO_PAIRS, Reason.NO_PAIRS)


@settings(max_examples=40, deadline=None)
@given(some_reports(), st.randoms(use_true_random=False))
def test_order_of_reports_and_names_of_raters_change_nothing(case: tuple[list[Row], list[int]], random: Any) -> None:
    rows, lengths = case
    other = [(trace, 9 - rater, end, censored) for trace, rater, end, censored in rows]
    random.shuffle(other)
    assert first_error_agreement.estimate_agreement(made(rows, lengths)) == first_error_agreement.estimate_agreement(
        made(other, lengths)
    )


def test_censored_report_never_counts_as_no_error() -> None:
    rows = [(0, 0, 5, False), (0, 1, 3, True), (1, 0, 2, False), (1, 1, 2, False)]
    found = first_error_agreement.estimate_agreement(made(rows, [5, 5]))
    assert (found.pairs, found.pairs_with_a_censored_report) == (1, 1)
    assert found.exact.value == 1.0
    assert found.has_error_kappa.reason == Reason.NO_VARIATION
    assert found.has_error_kappa.counts.pairable == 1


def test_last_step_and_no_error_are_not_neighbors() -> None:
    found = first_error_agreement.estimate_agreement(made([(0, 0, 4, False), (0, 1, 5, False)], [5]))
    assert (found.exact.value, found.within_one.value) == (0.0, 0.0)


def test_has_error_kappa_is_scotts_pi_for_pairs() -> None:
    """Both say error on 40, both none on 45, they differ on 15: the first table of Feinstein and Cicchetti."""
    says = [(0, 1)] * 40 + [(5, 5)] * 45 + [(0, 5)] * 9 + [(5, 2)] * 6
    rows = [(trace, rater, end, False) for trace, ends in enumerate(says) for rater, end in enumerate(ends)]
    found = first_error_agreement.estimate_agreement(made(rows, [5] * 100)).has_error_kappa
    n, p = 200, (80 + 15) / 200
    assert found.value == pytest.approx((0.85 - (p * p + (1 - p) ** 2)) / (1 - (p * p + (1 - p) ** 2)))
    assert 1 - (n - 1) / n * (1 - float(found.value or 0)) == pytest.approx(0.700752, abs=1e-6)  # alpha's correction


def test_has_error_kappa_has_an_interval_by_problem() -> None:
    random = np.random.default_rng(3)
    truth = random.integers(0, 6, 120)
    rows = [
        (trace, rater, int(truth[trace] if random.random() < 0.8 else random.integers(0, 6)), False)
        for trace in range(120)
        for rater in range(2)
    ]
    found = first_error_agreement.estimate_agreement(
        made(rows, [5] * 120, problems=[trace // 4 for trace in range(120)])
    )
    for estimate in (found.exact, found.within_one, found.has_error_kappa):
        assert estimate.interval is not None
        assert estimate.bootstrap is not None
        assert estimate.counts.problems == 30


def test_no_reports_give_a_reason() -> None:
    found = first_error_agreement.estimate_agreement(made([], []))
    assert found.exact.reason == found.has_error_kappa.reason == Reason.NO_PAIRS


def test_of_positions_reads_the_benchmark_way_of_writing() -> None:
    reports = first_error_reports.reports_from_positions(
        traces=np.array([0, 0, 1]), raters=np.array([0, 1, 0]), positions=np.array([-1, 2, 0]), lengths=np.array([4, 3])
    )
    assert reports.ends.tolist() == [4, 2, 0]
    assert reports.says_error.tolist() == [False, True, True]
    assert reports.says_none.tolist() == [True, False, False]


@pytest.mark.parametrize("end", [-1, 6])
def test_reports_refuse_an_end_outside_the_trace(end: int) -> None:
    with pytest.raises(ValueError, match="end"):
        made([(0, 0, end, False)], [5])


def test_reports_refuse_columns_that_do_not_fit() -> None:
    none = np.zeros(0, dtype=np.int64)
    with pytest.raises(ValueError, match="reports"):
        ReportArrays(np.array([0]), none, none, none.astype(np.bool_), np.array([3]), np.array([0]), np.array([0]))
