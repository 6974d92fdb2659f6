"""What each protocol asks, as rules without a database."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeling.projects import protocols
from labeling.projects.protocols import MissingRating, ProtocolStep

FIRST_ERROR, EVERY_STEP = "first_error", "every_step"


def path(*ratings: int | None) -> list[ProtocolStep]:
    return [ProtocolStep(position, True, (rating,)) for position, rating in enumerate(ratings)]


def test_missing_is_everything_up_to_the_first_error() -> None:
    assert protocols.find_missing_ratings(FIRST_ERROR, path(1, None, None)) == [
        MissingRating(1, 0),
        MissingRating(2, 0),
    ]
    assert protocols.find_missing_ratings(FIRST_ERROR, path(1, -1, None)) == []
    assert protocols.find_missing_ratings(FIRST_ERROR, path(None, -1, None)) == [MissingRating(0, 0)]
    assert protocols.find_missing_ratings(FIRST_ERROR, path(1, 0, 1)) == []


def test_missing_has_the_alternatives_of_the_first_error_alone() -> None:
    steps = [
        ProtocolStep(0, True, (1, None)),
        ProtocolStep(1, True, (-1, None, 0, None)),
        ProtocolStep(2, True, (None, None)),
    ]
    assert protocols.find_missing_ratings(FIRST_ERROR, steps) == [MissingRating(1, 1), MissingRating(1, 3)]
    assert protocols.find_missing_ratings(EVERY_STEP, steps) == [MissingRating(2, 0)]


def test_missing_passes_over_context_and_asks_nothing_of_a_live_trace() -> None:
    steps = [ProtocolStep(0, False, (None,)), ProtocolStep(1, True, (None,)), ProtocolStep(2, True, ())]
    assert protocols.find_missing_ratings(FIRST_ERROR, steps) == [MissingRating(1, 0)]
    assert protocols.find_missing_ratings("live", steps) == []


def test_finish_reason_tells_an_error_found_from_all_steps_rated() -> None:
    assert protocols.derive_finish_reason(FIRST_ERROR, path(1, -1, None)) == "found_error"
    assert protocols.derive_finish_reason(FIRST_ERROR, path(1, 1)) == "solution"
    assert protocols.derive_finish_reason(EVERY_STEP, path(1, -1, 1)) == "solution"


@pytest.mark.parametrize(
    ("protocol", "steps", "says"),
    [
        (FIRST_ERROR, path(1, None, None), "Find the first negative, or rate 2 more"),
        (FIRST_ERROR, path(None, -1), "Rate 1 more step before step 2"),
        (FIRST_ERROR, [ProtocolStep(0, True, (-1, None, None))], "Rate 2 more alternatives to step 1"),
        (FIRST_ERROR, [ProtocolStep(0, True, (-1, 1, None))], "Rate 1 more alternative to step 1"),
        (FIRST_ERROR, path(1, -1, None), "Submit: first error at step 2"),
        (FIRST_ERROR, path(1, 1), "Submit: no error found"),
        (EVERY_STEP, path(1, None), "Rate 1 more step"),
        (EVERY_STEP, path(-1, 1), "Submit"),
    ],
)
def test_button_says_what_is_missing_or_what_will_be_said(protocol: str, steps: list[ProtocolStep], says: str) -> None:
    assert protocols.submit_button_text(protocol, steps) == says


rated_steps = st.lists(
    st.tuples(st.booleans(), st.lists(st.sampled_from([-1, 0, 1, None]), max_size=3)), max_size=6
).map(lambda items: [ProtocolStep(at, rateable, tuple(ratings)) for at, (rateable, ratings) in enumerate(items)])


@given(steps=rated_steps, protocol=st.sampled_from([FIRST_ERROR, EVERY_STEP]))
def test_button_submits_exactly_when_nothing_is_missing(steps: list[ProtocolStep], protocol: str) -> None:
    assert protocols.submit_button_text(protocol, steps).startswith("Submit") == (
        not protocols.find_missing_ratings(protocol, steps)
    )


@given(steps=rated_steps)
def test_missing_shrinks_to_nothing_by_rating_what_is_missing(steps: list[ProtocolStep]) -> None:
    for place in list(protocols.find_missing_ratings(FIRST_ERROR, steps)):
        step = steps[place.step]
        ratings = tuple(1 if n == place.option else rating for n, rating in enumerate(step.ratings))
        steps[place.step] = step._replace(ratings=ratings)
    assert protocols.find_missing_ratings(FIRST_ERROR, steps) == []
