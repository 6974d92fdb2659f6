"""The first error by votes, compared with counts by hand."""

from collections.abc import Set

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bench import simulated_raters
from stats import first_error_reports
from stats.first_error_reports import ReportArrays


def reports(ends: list[list[int]], lengths: list[int], censored: Set[tuple[int, int]] = frozenset()) -> ReportArrays:
    rows = [(trace, rater, end) for trace, row in enumerate(ends) for rater, end in enumerate(row)]
    traces, raters, at = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    n = len(lengths)
    return ReportArrays(
        traces=traces,
        raters=raters,
        ends=at,
        is_censored=np.array([(trace, rater) in censored for trace, rater, _ in rows]),
        lengths=np.array(lengths),
        problems=np.arange(n),
        domains=np.zeros(n, dtype=np.int64),
    )


def test_majority_over_steps_asks_only_raters_still_at_risk() -> None:
    """One of three raters stops at 1; the two who continue both stop at 3. The votes are 1 : 2, then 2 : 0."""
    found = reports([[1, 3, 3], [0, 4, 4], [2, 2, 4]], [4, 4, 4])
    assert first_error_reports.majority_by_step(found).tolist() == [3, 4, 2]


def test_majority_over_places_tells_its_share_and_takes_the_earlier_of_a_tie() -> None:
    steps, shares = first_error_reports.majority_by_place(reports([[1, 3, 3], [0, 4], [4, 4, 4]], [4, 4, 4]))
    assert steps.tolist() == [3, 0, 4]
    assert shares.round(3).tolist() == [0.667, 0.5, 1.0]


def test_censored_report_votes_for_no_place_and_against_the_steps_it_passed() -> None:
    found = reports([[1, 3, 3]], [4], censored={(0, 1), (0, 2)})
    assert first_error_reports.majority_by_place(found)[0].tolist() == [1]
    assert first_error_reports.majority_by_step(found).tolist() == [4]


def test_step_votes_end_with_the_error_and_before_the_censoring() -> None:
    found = reports([[1, 3, 4]], [4], censored={(0, 1)})
    votes = first_error_reports.collect_step_votes(found, first_error_reports.enumerate_places(found.lengths))
    assert np.bincount(votes.raters).tolist() == [2, 3, 4]
    assert votes.places[votes.is_negative].tolist() == [1]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 500))
def test_all_three_agree_where_all_raters_do(seed: int) -> None:
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 8, 20)
    truth = random.integers(0, lengths + 1)
    found = reports([[int(end)] * 3 for end in truth], lengths.tolist())
    assert first_error_reports.majority_by_step(found).tolist() == truth.tolist()
    assert first_error_reports.majority_by_place(found)[0].tolist() == truth.tolist()


def test_models_over_steps_find_most_first_errors() -> None:
    crowd = simulated_raters.simulate_crowd(traces=400, raters_per_trace=5, seed=4)
    assert (first_error_reports.dawid_skene_by_step(crowd.reports) == crowd.truth).mean() > 0.85
