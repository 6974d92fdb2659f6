"""From votes to a verdict."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from machines.prompts import JudgeContract
from machines.replies import ParsedReply, ReplyState
from machines.verdicts import combine_votes

CRITIC, LABELS = JudgeContract.CRITIC, JudgeContract.STEP_LABELS
STEPS = [0, 1, 2]


def vote(first_error: int | None) -> ParsedReply:
    ratings = {n: -1 if n == first_error else 1 for n in STEPS if first_error is None or n <= first_error}
    return ParsedReply(ReplyState.PARSED, first_error, ratings)


def label(*ratings: int, **reasons: str) -> ParsedReply:
    wrong = [n for n, rating in enumerate(ratings) if rating == -1]
    by_step = {int(name[1:]): reason for name, reason in reasons.items()}
    return ParsedReply(ReplyState.PARSED, min(wrong, default=None), dict(enumerate(ratings)), by_step)


def test_votes_give_a_distribution_over_the_first_error() -> None:
    verdict = combine_votes(CRITIC, [vote(1), vote(None), vote(1), vote(2)], STEPS)
    assert verdict is not None
    assert verdict.first_errors == {1: 0.5, 2: 0.25, None: 0.25}
    assert verdict.first_error == 1
    assert [(step.position, step.rating, step.value) for step in verdict.steps] == [(0, 1, 1.0), (1, -1, 0.5)]


def test_unread_votes_are_no_votes() -> None:
    replies = [ParsedReply(ReplyState.UNPARSED), vote(0), ParsedReply(ReplyState.FAILED)]
    verdict = combine_votes(CRITIC, replies, STEPS)
    assert verdict is not None
    assert verdict.n_votes == 1
    assert combine_votes(CRITIC, [ParsedReply(ReplyState.EMPTY)], STEPS) is None


@pytest.mark.parametrize(("votes", "winner"), [([2, 0, 0, 2], 2), ([None, 1], None), ([1, None], 1)])
def test_first_voted_wins_a_tie(votes: Sequence[int | None], winner: int | None) -> None:
    verdict = combine_votes(CRITIC, [vote(each) for each in votes], STEPS)
    assert verdict is not None
    assert verdict.first_error == winner


def test_labels_are_the_majority_per_step() -> None:
    votes = [label(1, 0, -1, s2="too small"), label(1, -1, -1, s2="wrong sum"), label(1, 0, 1)]
    verdict = combine_votes(LABELS, votes, STEPS)
    assert verdict is not None
    assert [step.rating for step in verdict.steps] == [1, 0, -1]
    assert verdict.steps[2].reason == "too small"
    assert [step.n_right for step in verdict.steps] == [3, 2, 1]


@given(st.lists(st.sampled_from([None, *STEPS]), min_size=1, max_size=12))
def test_values_fall_and_shares_add_up(votes: list[int | None]) -> None:
    verdict = combine_votes(CRITIC, [vote(each) for each in votes], STEPS)
    assert verdict is not None
    assert sum(verdict.first_errors.values()) == pytest.approx(1.0)
    values = [step.value or 0.0 for step in verdict.steps]
    assert values == sorted(values, reverse=True)


def test_probabilities_of_yes_give_a_distribution_over_the_first_error() -> None:
    votes = [
        ParsedReply(ReplyState.PARSED, 1, {0: 1, 1: -1}, yes_shares={0: 0.9, 1: 0.2}),
        ParsedReply(ReplyState.PARSED, None, {0: 1, 1: 1, 2: 1}),
    ]
    verdict = combine_votes(JudgeContract.YES_NO, votes, STEPS)
    assert verdict is not None
    assert [(step.position, step.rating) for step in verdict.steps] == [(0, 1), (1, 1), (2, 1)]
    assert [step.value for step in verdict.steps] == pytest.approx([0.95, 0.57, 0.57])
    assert verdict.first_errors == pytest.approx({0: 0.05, 1: 0.38, None: 0.57})
    assert verdict.first_error is None
    alone = combine_votes(JudgeContract.YES_NO, votes[:1], STEPS)
    assert alone is not None
    assert (alone.first_error, alone.n_votes) == (1, 1)
    assert sum(alone.first_errors.values()) == pytest.approx(1)
