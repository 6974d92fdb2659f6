"""Step labels from a consensus on the first error."""

import pytest

from labeling.quality import consensus
from labeling.quality.consensus import OptionRating


def said(first_error: int | None, *ratings: int, option: int = 0) -> list[OptionRating]:
    """Return the ratings of one submission. Files and every-step projects can have ratings after the error."""
    return [OptionRating(step, option, rating, first_error) for step, rating in enumerate(ratings)]


def test_survivors_do_not_vote_on_labels() -> None:
    """Two raters report the error at the third step. A third rates the first step wrong and continues, with neutral
    where the raters still at risk rate positive."""
    ratings = [*said(2, 1, 1, -1), *said(2, 1, 1, -1), *said(0, -1, 0, 0, 0)]
    found = consensus.labels_from_first_error(ratings, first_error=2, votes=[2, 2, 0])
    assert [label[:3] for label in found] == [(0, 0, 1), (1, 0, 1), (2, 0, -1)]
    assert [label.n_at_risk for label in found] == [3, 2, 2]
    assert [label.confidence for label in found] == pytest.approx([2 / 3, 2 / 3, 2 / 3])


def test_step_that_only_survivors_rated_has_no_label() -> None:
    """One rater gives up after one step; two others call that step wrong and continue."""
    ratings = [*said(None, 1), *said(0, -1, 1, 1), *said(0, -1, 1, 1)]
    found = consensus.labels_from_first_error(ratings, first_error=None, votes=[0, 0])
    assert [label[:2] for label in found] == [(0, 0)]


def test_survivor_does_not_outvote_raters_at_risk() -> None:
    ratings = [*said(None, 1, 0), *said(0, -1, 1), *said(0, -1, 1)]
    found = consensus.labels_from_first_error(ratings, first_error=None, votes=[None, 0, 0])
    assert [(label.step, label.rating, label.n_at_risk) for label in found] == [(0, 1, 3), (1, 0, 1)]


def test_steps_before_the_error_are_not_negative_and_ties_are_positive() -> None:
    ratings = [*said(0, -1), *said(1, 0, -1), *said(1, 1, -1)]
    found = consensus.labels_from_first_error(ratings, first_error=1, votes=[0, 1, 1])
    assert [(label.step, label.rating) for label in found] == [(0, 1), (1, -1)]


def test_alternatives_get_the_majority_label_and_ties_none() -> None:
    others = [OptionRating(0, 1, rating, 0) for rating in (1, 1, -1)] + [
        OptionRating(0, 2, rating, 0) for rating in (1, -1)
    ]
    found = consensus.labels_from_first_error([*said(0, -1), *others], first_error=0, votes=[0])
    assert [label[:3] for label in found] == [(0, 0, -1), (0, 1, 1)]
    (label,) = consensus.labels_from_every_step(others)
    assert (label.option, label.rating, label.n_at_risk) == (1, 1, 3)
