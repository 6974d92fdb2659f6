"""Majorities, and Dawid–Skene on the paper's own table and on two public crowds, and what it must not depend on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench import public_crowds
from stats import label_votes
from stats.label_votes import LabelVotes
from tests.stats import anesthetists


def test_fit_equals_the_paper_on_the_anaesthetists() -> None:
    fit = label_votes.fit_votes(
        anesthetists.load_votes(), smoothing=0, diagonal_smoothing=0, max_rounds=1000, tolerance=1e-12
    )
    assert fit.class_shares == pytest.approx([0.3996, 0.4220, 0.1118, 0.0667], abs=5e-5)
    assert fit.log_likelihood == pytest.approx(-192.8909, abs=5e-5)
    assert fit.has_converged
    assert fit.errors[0, 0, :2] == pytest.approx([0.89, 0.11], abs=0.006)  # observer 1 on class 1, the paper's table 2


def test_fit_finds_the_bluebirds(shared_data: Path) -> None:
    votes, truth = public_crowds.load_bluebirds(shared_data)
    assert (label_votes.take_majority(votes)[0] == truth).mean() == pytest.approx(0.759, abs=5e-4)
    assert (label_votes.fit_votes(votes).labels == truth).mean() >= 0.89


def test_fit_matches_the_products(shared_data: Path) -> None:
    votes, truth = public_crowds.load_products(shared_data)
    assert (label_votes.take_majority(votes)[0] == truth).mean() == pytest.approx(0.897, abs=5e-4)
    assert (label_votes.fit_votes(votes).labels == truth).mean() >= 0.935


@st.composite
def some_votes(draw: Any) -> LabelVotes:
    n = draw(st.integers(1, 40))
    columns = [draw(st.lists(st.integers(0, top), min_size=n, max_size=n)) for top in (6, 3, 2)]
    tasks, workers, labels = (np.array(column) for column in columns)
    return LabelVotes(np.append(tasks, 6), np.append(workers, 3), np.append(labels, 0), 3)


@settings(max_examples=40, deadline=None)
@given(some_votes(), st.randoms(use_true_random=False))
def test_order_of_votes_changes_nothing(votes: LabelVotes, random: Any) -> None:
    order = list(range(len(votes.tasks)))
    random.shuffle(order)
    other = LabelVotes(votes.tasks[order], votes.workers[order], votes.labels[order], votes.k)
    first, second = label_votes.fit_votes(votes, max_rounds=5), label_votes.fit_votes(other, max_rounds=5)
    assert first.posterior == pytest.approx(second.posterior, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(some_votes())
@pytest.mark.fault
def test_posterior_is_a_distribution_and_likelihood_never_falls(votes: LabelVotes) -> None:
    fits = [
        label_votes.fit_votes(votes, smoothing=0, diagonal_smoothing=0, max_rounds=n, tolerance=-1) for n in (1, 2, 5)
    ]
    assert fits[0].posterior.sum(axis=1) == pytest.approx(np.ones(votes.n_tasks))
    likelihoods = [fit.log_likelihood for fit in fits]
    assert likelihoods == pytest.approx(sorted(likelihoods), abs=1e-7)


def test_smoothing_is_added_to_what_was_counted() -> None:
    """.1 vote is added everywhere, and .5 more for the right label, before the division."""
    fit = label_votes.fit_votes(LabelVotes(np.array([0, 1]), np.array([0, 1]), np.array([0, 1]), 2), max_rounds=0)
    assert fit.errors[0] == pytest.approx(np.array([[1.6 / 1.7, 0.1 / 1.7], [0.1 / 0.7, 0.6 / 0.7]]))


def test_single_vote_decides() -> None:
    fit = label_votes.fit_votes(LabelVotes(np.array([0, 1, 2]), np.zeros(3, int), np.array([2, 0, 2]), 3))
    assert fit.labels.tolist() == [2, 0, 2]


def test_nothing_voted_gives_nothing() -> None:
    none = np.zeros(0, dtype=np.int64)
    fit = label_votes.fit_votes(LabelVotes(none, none, none, 3))
    assert fit.posterior.shape == (0, 3)


def test_invalid_votes_are_rejected() -> None:
    one = np.array([0])
    with pytest.raises(ValueError, match="vote"):
        LabelVotes(one, np.array([0, 1]), one, 2)
    with pytest.raises(ValueError, match="labels"):
        LabelVotes(one, one, np.array([2]), 2)


def test_majority_returns_label_and_share() -> None:
    """The first label of a tie; -1 for a task without votes."""
    tasks, labels = np.array([0, 0, 0, 1, 1, 3, 3]), np.array([0, 1, 0, 0, 2, 2, 2])
    found, shares = label_votes.take_majority(LabelVotes(tasks, np.arange(7), labels, 3))
    assert found.tolist() == [0, 0, -1, 2]
    assert shares == pytest.approx([2 / 3, 0.5, 0, 1])


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
