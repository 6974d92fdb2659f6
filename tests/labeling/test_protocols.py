"""What each protocol asks, as rules without a database."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeling import protocols
from labeling.protocols import Place, Rated

FIRST_ERROR, EVERY_STEP = "first_error", "every_step"


def path(*ratings: int | None) -> list[Rated]:
    return [Rated(position, True, (rating,)) for position, rating in enumerate(ratings)]


def test_missing_is_everything_up_to_the_first_error() -> None:
    assert protocols.missing(FIRST_ERROR, path(1, None, None)) == [Place(1, 0), Place(2, 0)]
    assert protocols.missing(FIRST_ERROR, path(1, -1, None)) == []
    assert protocols.missing(FIRST_ERROR, path(None, -1, None)) == [Place(0, 0)]
    assert protocols.missing(FIRST_ERROR, path(1, 0, 1)) == []


def test_missing_has_the_alternatives_of_the_first_error_alone() -> None:
    steps = [Rated(0, True, (1, None)), Rated(1, True, (-1, None, 0, None)), Rated(2, True, (None, None))]
    assert protocols.missing(FIRST_ERROR, steps) == [Place(1, 1), Place(1, 3)]
    assert protocols.missing(EVERY_STEP, steps) == [Place(2, 0)]


def test_missing_passes_over_context_and_asks_nothing_of_a_live_trace() -> None:
    steps = [Rated(0, False, (None,)), Rated(1, True, (None,)), Rated(2, True, ())]
    assert protocols.missing(FIRST_ERROR, steps) == [Place(1, 0)]
    assert protocols.missing("live", steps) == []


def test_finish_reason_tells_an_error_found_from_all_steps_rated() -> None:
    assert protocols.finish_reason(FIRST_ERROR, path(1, -1, None)) == "found_error"
    assert protocols.finish_reason(FIRST_ERROR, path(1, 1)) == "solution"
    assert protocols.finish_reason(EVERY_STEP, path(1, -1, 1)) == "solution"


@pytest.mark.parametrize(
    ("protocol", "steps", "says"),
    [
        (FIRST_ERROR, path(1, None, None), "Find the first negative, or rate 2 more"),
        (FIRST_ERROR, path(None, -1), "Rate 1 more step before step 2"),
        (FIRST_ERROR, [Rated(0, True, (-1, None, None))], "Rate 2 more alternatives to step 1"),
        (FIRST_ERROR, [Rated(0, True, (-1, 1, None))], "Rate 1 more alternative to step 1"),
        (FIRST_ERROR, path(1, -1, None), "Submit: first error at step 2"),
        (FIRST_ERROR, path(1, 1), "Submit: no error found"),
        (EVERY_STEP, path(1, None), "Rate 1 more step"),
        (EVERY_STEP, path(-1, 1), "Submit"),
    ],
)
def test_button_says_what_is_missing_or_what_will_be_said(protocol: str, steps: list[Rated], says: str) -> None:
    assert protocols.button(protocol, steps) == says


rated_steps = st.lists(
    st.tuples(st.booleans(), st.lists(st.sampled_from([-1, 0, 1, None]), max_size=3)), max_size=6
).map(lambda items: [Rated(at, rateable, tuple(ratings)) for at, (rateable, ratings) in enumerate(items)])


@given(steps=rated_steps, protocol=st.sampled_from([FIRST_ERROR, EVERY_STEP]))
def test_button_submits_exactly_when_nothing_is_missing(steps: list[Rated], protocol: str) -> None:
    assert protocols.button(protocol, steps).startswith("Submit") == (not protocols.missing(protocol, steps))


@given(steps=rated_steps)
def test_missing_shrinks_to_nothing_by_rating_what_is_missing(steps: list[Rated]) -> None:
    for place in list(protocols.missing(FIRST_ERROR, steps)):
        step = steps[place.step]
        ratings = tuple(1 if n == place.option else rating for n, rating in enumerate(step.ratings))
        steps[place.step] = step._replace(ratings=ratings)
    assert protocols.missing(FIRST_ERROR, steps) == []
