"""The first error by counting votes, against counting by hand."""

from collections.abc import Set
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench import simulated_raters
from stats import first_error_reports, first_error_votes, label_votes
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
    """One of three stops at 1; of the two who went on both stop at 3. Then 1 : 2, and 2 : 0."""
    found = reports([[1, 3, 3], [0, 4, 4], [2, 2, 4]], [4, 4, 4])
    assert first_error_votes.majority_by_step(found).tolist() == [3, 4, 2]


def test_majority_over_places_tells_its_share_and_takes_the_earlier_of_a_tie() -> None:
    steps, shares = first_error_votes.majority_by_place(reports([[1, 3, 3], [0, 4], [4, 4, 4]], [4, 4, 4]))
    assert steps.tolist() == [3, 0, 4]
    assert shares.round(3).tolist() == [0.667, 0.5, 1.0]


def test_censored_report_votes_for_no_place_and_against_the_steps_it_passed() -> None:
    found = reports([[1, 3, 3]], [4], censored={(0, 1), (0, 2)})
    assert first_error_votes.majority_by_place(found)[0].tolist() == [1]
    assert first_error_votes.majority_by_step(found).tolist() == [4]


def test_step_votes_end_with_the_error_and_before_the_censoring() -> None:
    found = reports([[1, 3, 4]], [4], censored={(0, 1)})
    votes = first_error_votes.collect_step_votes(found, first_error_reports.enumerate_places(found.lengths))
    assert np.bincount(votes.raters).tolist() == [2, 3, 4]
    assert votes.places[votes.is_negative].tolist() == [1]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 500))
def test_all_three_agree_where_all_raters_do(seed: int) -> None:
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 8, 20)
    truth = random.integers(0, lengths + 1)
    found = reports([[int(end)] * 3 for end in truth], lengths.tolist())
    assert first_error_votes.majority_by_step(found).tolist() == truth.tolist()
    assert first_error_votes.majority_by_place(found)[0].tolist() == truth.tolist()


def test_models_over_steps_find_most_first_errors() -> None:
    crowd = simulated_raters.simulate_crowd(traces=400, raters_per_trace=5, seed=4)
    assert (first_error_votes.dawid_skene_by_step(crowd.reports) == crowd.truth).mean() > 0.85


@given(st.lists(st.one_of(st.none(), st.integers(0, 4)), max_size=9), st.randoms(use_true_random=False))
def test_leading_place_does_not_depend_on_order(votes: list[int | None], random: Any) -> None:
    found = label_votes.find_leading_place(votes)
    shuffled = list(votes)
    random.shuffle(shuffled)
    assert label_votes.find_leading_place(shuffled) == found
    if found is None:
        assert not votes
        return
    counted = sorted((votes.count(each) for each in set(votes)), reverse=True)
    assert (found.n, found.n_votes) == (counted[0], len(votes))
    assert votes.count(found.place) == found.n
    assert found.margin == pytest.approx((counted[0] - (counted[1:] or [0])[0]) / len(votes))
    assert found.is_tied == (len(counted) > 1 and counted[0] == counted[1])


def test_leading_place_is_the_earlier_one_of_a_tie() -> None:
    """An error that ties with "no error" leads."""
    for votes, place in (([3, 1, 3, 1], 1), ([None, 2], 2), ([None, None, 2], None)):
        found = label_votes.find_leading_place(votes)
        assert found is not None
        assert found.place == place
