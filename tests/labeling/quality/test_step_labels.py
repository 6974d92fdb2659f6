"""Labels follow from the place: whoever went on behind an error of their own says nothing there, nobody behind it."""

import pytest

from labeling.quality import step_labels
from labeling.quality.step_labels import OptionRating


def said(first_error: int | None, *ratings: int, option: int = 0) -> list[OptionRating]:
    """One reading from the first step on. A file, or a project that rates every step, may go on behind the error."""
    return [OptionRating(step, option, rating, first_error) for step, rating in enumerate(ratings)]


def test_survivors_alone_make_no_label_and_beside_others_have_no_voice() -> None:
    """Two see the error at the third step. One calls the first step wrong and goes on, and says neutral where those who
    are still at risk say positive."""
    ratings = [*said(2, 1, 1, -1), *said(2, 1, 1, -1), *said(0, -1, 0, 0, 0)]
    found = step_labels.labels_from_first_error(ratings, first_error=2, votes=[2, 2, 0])
    assert [label[:3] for label in found] == [(0, 0, 1), (1, 0, 1), (2, 0, -1)]
    assert [label.n_at_risk for label in found] == [3, 2, 2]
    assert [label.confidence for label in found] == pytest.approx([2 / 3, 2 / 3, 2 / 3])


def test_step_that_only_survivors_rated_has_no_label() -> None:
    """Somebody gave up after one step; two others had called that step wrong and went on."""
    ratings = [*said(None, 1), *said(0, -1, 1, 1), *said(0, -1, 1, 1)]
    found = step_labels.labels_from_first_error(ratings, first_error=None, votes=[0, 0])
    assert [label[:2] for label in found] == [(0, 0)]


def test_one_survivor_outvotes_nobody_at_a_step_of_others() -> None:
    ratings = [*said(None, 1, 0), *said(0, -1, 1), *said(0, -1, 1)]
    found = step_labels.labels_from_first_error(ratings, first_error=None, votes=[None, 0, 0])
    assert [(label.step, label.rating, label.n_at_risk) for label in found] == [(0, 1, 3), (1, 0, 1)]


def test_nothing_negative_stands_before_the_place_and_a_tie_counts_as_positive() -> None:
    ratings = [*said(0, -1), *said(1, 0, -1), *said(1, 1, -1)]
    found = step_labels.labels_from_first_error(ratings, first_error=1, votes=[0, 1, 1])
    assert [(label.step, label.rating) for label in found] == [(0, 1), (1, -1)]


def test_alternatives_have_what_most_say_and_a_tie_is_no_label() -> None:
    others = [OptionRating(0, 1, rating, 0) for rating in (1, 1, -1)] + [
        OptionRating(0, 2, rating, 0) for rating in (1, -1)
    ]
    found = step_labels.labels_from_first_error([*said(0, -1), *others], first_error=0, votes=[0])
    assert [label[:3] for label in found] == [(0, 0, -1), (0, 1, 1)]
    (label,) = step_labels.labels_from_every_step(others)
    assert (label.option, label.rating, label.n_at_risk) == (1, 1, 3)
