"""Protocol rules, without a database."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeling.projects import protocols
from labeling.projects.protocols import MissingRating, ProtocolStep, SubmitCode, SubmitState

FIRST_ERROR, EVERY_STEP = "first_error", "every_step"


def path(*ratings: int | None) -> list[ProtocolStep]:
    return [ProtocolStep(position, True, (rating,)) for position, rating in enumerate(ratings)]


def test_everything_up_to_the_first_error_is_missing() -> None:
    assert protocols.find_missing_ratings(FIRST_ERROR, path(1, None, None)) == [
        MissingRating(1, 0),
        MissingRating(2, 0),
    ]
    assert protocols.find_missing_ratings(FIRST_ERROR, path(1, -1, None)) == []
    assert protocols.find_missing_ratings(FIRST_ERROR, path(None, -1, None)) == [MissingRating(0, 0)]
    assert protocols.find_missing_ratings(FIRST_ERROR, path(1, 0, 1)) == []


def test_only_alternatives_of_the_first_error_are_missing() -> None:
    steps = [
        ProtocolStep(0, True, (1, None)),
        ProtocolStep(1, True, (-1, None, 0, None)),
        ProtocolStep(2, True, (None, None)),
    ]
    assert protocols.find_missing_ratings(FIRST_ERROR, steps) == [MissingRating(1, 1), MissingRating(1, 3)]
    assert protocols.find_missing_ratings(EVERY_STEP, steps) == [MissingRating(2, 0)]


def test_context_and_live_traces_need_no_ratings() -> None:
    steps = [ProtocolStep(0, False, (None,)), ProtocolStep(1, True, (None,)), ProtocolStep(2, True, ())]
    assert protocols.find_missing_ratings(FIRST_ERROR, steps) == [MissingRating(1, 0)]
    assert protocols.find_missing_ratings("live", steps) == []


def test_finish_reason() -> None:
    assert protocols.derive_finish_reason(FIRST_ERROR, path(1, -1, None)) == "found_error"
    assert protocols.derive_finish_reason(FIRST_ERROR, path(1, 1)) == "solution"
    assert protocols.derive_finish_reason(EVERY_STEP, path(1, -1, 1)) == "solution"


@pytest.mark.parametrize(
    ("protocol", "steps", "state"),
    [
        (FIRST_ERROR, path(1, None, None), SubmitState(SubmitCode.FIND_NEGATIVE, missing=2)),
        (FIRST_ERROR, path(None, -1), SubmitState(SubmitCode.RATE_BEFORE, missing=1, number=2)),
        (
            FIRST_ERROR,
            [ProtocolStep(0, True, (-1, None, None))],
            SubmitState(SubmitCode.RATE_ALTERNATIVES, missing=2, number=1),
        ),
        (FIRST_ERROR, path(1, -1, None), SubmitState(SubmitCode.FIRST_ERROR, number=2)),
        (FIRST_ERROR, path(1, 1), SubmitState(SubmitCode.NO_ERROR)),
        (EVERY_STEP, path(1, None), SubmitState(SubmitCode.RATE_STEPS, missing=1)),
        (EVERY_STEP, path(-1, 1), SubmitState(SubmitCode.ALL_RATED)),
    ],
)
def test_submit_state_is_what_is_missing_or_how_it_ends(
    protocol: str, steps: list[ProtocolStep], state: SubmitState
) -> None:
    assert protocols.submit_state(protocol, steps) == state


def test_step_number_leaves_out_context() -> None:
    steps = [ProtocolStep(0, False, (None,)), *(ProtocolStep(at, True, (rating,)) for at, rating in ((1, 1), (2, -1)))]
    assert protocols.submit_state(FIRST_ERROR, steps).number == 2


def test_every_submit_state_has_a_text() -> None:
    for code, forms in protocols.submit_texts().items():
        for count, text in zip((1, 2), forms, strict=True):
            assert protocols.submit_text(SubmitState(code, count, 3)) == text.format(count=count, number=3)
    assert protocols.submit_texts().keys() == set(SubmitCode)


rated_steps = st.lists(
    st.tuples(st.booleans(), st.lists(st.sampled_from([-1, 0, 1, None]), max_size=3)), max_size=6
).map(lambda items: [ProtocolStep(at, rateable, tuple(ratings)) for at, (rateable, ratings) in enumerate(items)])


@given(steps=rated_steps, protocol=st.sampled_from([FIRST_ERROR, EVERY_STEP]))
def test_submit_is_ready_exactly_when_nothing_is_missing(steps: list[ProtocolStep], protocol: str) -> None:
    missing = protocols.find_missing_ratings(protocol, steps)
    assert protocols.submit_state(protocol, steps).is_ready == (not missing)


@given(steps=rated_steps)
def test_nothing_is_missing_once_the_missing_is_rated(steps: list[ProtocolStep]) -> None:
    for place in list(protocols.find_missing_ratings(FIRST_ERROR, steps)):
        step = steps[place.step]
        ratings = tuple(1 if n == place.option else rating for n, rating in enumerate(step.ratings))
        steps[place.step] = step._replace(ratings=ratings)
    assert protocols.find_missing_ratings(FIRST_ERROR, steps) == []
