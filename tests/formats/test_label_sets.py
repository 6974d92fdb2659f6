"""Label sets: every set follows from one reading, and equals the native labels of datasets with that rule."""

import io
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import chat, label_sets, native, processbench
from formats.examples import LabelRule, RowTally
from formats.label_sets import INDEPENDENT, LABEL_SETS, RECOVERS, RatedStep
from formats.records import TraceRecord
from tests.formats.export_rows import make_example, write_rows

DERIVED_SETS = LABEL_SETS[1:]
RATINGS = st.sampled_from([-1, 0, 1])
LINKS = st.sampled_from(["", RECOVERS, INDEPENDENT])
READINGS = st.lists(st.builds(RatedStep, RATINGS, LINKS), max_size=9)
PROTOCOLS = ("first_error", "carry_forward", "every_step", "recovery", "propagated", "")


def depends(steps: Sequence[RatedStep], at: int) -> bool:
    """The definition, step by step: an error before it, no recovery since, and no mark of its own."""
    is_carried = any(
        step.rating == -1 and all(later.error_link != RECOVERS for later in steps[error + 1 : at + 1])
        for error, step in enumerate(steps[:at])
    )
    return is_carried and steps[at].error_link != INDEPENDENT


@given(steps=READINGS)
def test_one_reading_gives_every_label_set(steps: list[RatedStep]) -> None:
    derived = {name: label_sets.derive_labels(steps, protocol="recovery", label_set=name) for name in DERIVED_SETS}
    assert all(each.is_complete for each in derived.values())
    ratings = [step.rating for step in steps]
    first = ratings.index(-1) if -1 in ratings else None
    end = len(steps) if first is None else first + 1
    assert derived["stop"].labels == (*ratings[:end], *[None] * (len(steps) - end))
    propagated = tuple(-1 if depends(steps, at) else step.rating for at, step in enumerate(steps))
    assert derived["propagated_ternary"].labels == propagated
    assert derived["carried_forward"].labels == tuple(1 if label == 0 else label for label in propagated)
    unrecovered = [
        at
        for at, step in enumerate(steps)
        if step.rating == -1 and all(later.error_link != RECOVERS for later in steps[at + 1 :])
    ]
    decisive = derived["decisive_error"]
    assert decisive.error == min(unrecovered, default=None)
    assert [at for at, label in enumerate(decisive.labels) if label == -1] == unrecovered[:1]
    for at, label in enumerate(decisive.labels):
        assert label is None or label == propagated[at]
        assert label is None or decisive.error is None or at <= decisive.error


@given(steps=st.lists(st.builds(RatedStep, st.one_of(RATINGS, st.none()), LINKS), max_size=7))
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_a_reading_does_not_determine_has_no_label(protocol: str, steps: list[RatedStep]) -> None:
    """Whatever the ratings of the unrated steps would be, the labels stay the same."""
    for name in DERIVED_SETS:
        derived = label_sets.derive_labels(steps, protocol=protocol, label_set=name)
        assert len(derived.labels) == len(steps)
        for rating in (-1, 0, 1):
            filled = [RatedStep(rating if step.rating is None else step.rating, step.error_link) for step in steps]
            known = label_sets.derive_labels(filled, protocol=protocol, label_set=name)
            for label, then in zip(derived.labels, known.labels, strict=True):
                assert label is None or label == then or name == "decisive_error"
            assert not derived.is_complete or derived == known


@given(ratings=st.lists(RATINGS, max_size=8))
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_first_error_is_the_same_under_every_protocol(protocol: str, ratings: list[int]) -> None:
    steps = [RatedStep(rating) for rating in ratings]
    error = ratings.index(-1) if -1 in ratings else None
    for name in ("stop", "carried_forward", "propagated_ternary"):
        assert label_sets.derive_labels(steps, protocol=protocol, label_set=name).error == error


@pytest.mark.parametrize(
    ("protocol", "ratings", "expected"),
    [
        ("first_error", (1, -1, None, None), (None, False)),
        ("first_error", (1, 1, -1), (2, True)),
        ("every_step", (1, -1, 1), (None, False)),
        ("every_step", (1, -1, -1), (1, True)),
        ("propagated", (0, -1, -1, -1), (1, True)),
        ("propagated", (-1, -1, 1, -1), (None, False)),
        ("carry_forward", (1, 0, 1), (None, True)),
        ("", (1, -1, -1), (None, False)),
        ("decisive_error", (None, None, -1, None), (2, True)),
    ],
)
def test_decisive_error_without_marks(
    protocol: str, ratings: tuple[int | None, ...], expected: tuple[int | None, bool]
) -> None:
    steps = [RatedStep(rating) for rating in ratings]
    derived = label_sets.derive_labels(steps, protocol=protocol, label_set="decisive_error")
    assert (derived.error, derived.is_complete) == expected


def test_an_unknown_label_set_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown"):
        label_sets.derive_labels([], protocol="recovery", label_set="as_rated")


# --- native labels ---------------------------------------------------------------------------------------------------


def derive(record: TraceRecord, name: str) -> list[int | None]:
    own = record.submissions[0].turns
    relabeled, _ = label_sets.relabel_record(record, name)
    assert [turn.position for turn in relabeled.submissions[0].turns] == [turn.position for turn in own]
    return [turn.shown[0].rating for turn in relabeled.submissions[0].turns if turn.shown]


def read_native(protocol: str, ratings: Sequence[int | None], links: Sequence[str] = ()) -> TraceRecord:
    steps = [f"Step {number}." for number in range(len(ratings))]
    item = {
        "problem": "P",
        "steps": steps,
        "labels": ratings,
        "labeling_protocol": protocol,
        "error_links": list(links) or None,
    }
    (record,) = native.read(io.BytesIO(json.dumps(item).encode()))
    assert isinstance(record, TraceRecord)
    return record


# Each case: the ratings and marks of a complete reading, and the labels that a dataset with the rule has.
HARD2VERIFY_SHAPED = [
    ((1, 1, 1), ("", "", ""), (1, 1, 1)),
    ((1, -1, 1, 1), ("", "", "", ""), (1, -1, -1, -1)),  # what follows from an error is incorrect
    ((1, -1, 1, 1, 1), ("", "", "", INDEPENDENT, ""), (1, -1, -1, 1, -1)),  # one step does not use the error
    ((-1, 1, 0, -1), ("", "", RECOVERS, ""), (-1, -1, 1, -1)),  # a second error after a repair
]
AGENT_SHAPED = [
    ((1, 0, 1), ("", "", ""), (1, 0, 1)),
    ((1, -1, 1, 0), ("", "", "", ""), (1, -1, -1, -1)),
    ((0, -1, 0, 1, 1), ("", "", "", RECOVERS, ""), (0, -1, -1, 1, 1)),  # acknowledges and corrects
    ((-1, 0, 1), ("", INDEPENDENT, ""), (-1, 0, -1)),
]
DECISIVE_SHAPED = [
    ((1, -1, 1, 1), ("", "", RECOVERS, ""), None),
    ((1, -1, 1, -1, 1), ("", "", RECOVERS, "", ""), 3),  # the first error was repaired, the second one decides
    ((-1, 1, -1), ("", "", ""), 0),
    ((1, 0, -1), ("", "", ""), 2),
]


@pytest.mark.parametrize(("ratings", "links", "labels"), HARD2VERIFY_SHAPED)
def test_carried_forward_equals_native_labels(
    ratings: tuple[int, ...], links: tuple[str, ...], labels: tuple[int, ...]
) -> None:
    assert derive(read_native("recovery", ratings, links), "carried_forward") == list(labels)
    assert derive(read_native("carry_forward", labels), "carried_forward") == list(labels)


@pytest.mark.parametrize(("ratings", "links", "labels"), AGENT_SHAPED)
def test_propagated_equals_native_labels(
    ratings: tuple[int, ...], links: tuple[str, ...], labels: tuple[int, ...]
) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Do it."}]
    for number in range(len(labels)):
        messages += [{"role": "assistant", "content": f"I do {number}."}, {"role": "user", "content": "Go on."}]
    step_labels = {str(2 * number + 1): label for number, label in enumerate(labels)}
    published = {"messages": messages, "step_labels": step_labels, "final_label": labels[-1]}
    (record,) = chat.read(io.BytesIO(json.dumps(published).encode()))
    assert isinstance(record, TraceRecord)
    assert record.submissions[0].protocol == "propagated"
    assert derive(record, "propagated_ternary") == list(labels)
    assert derive(read_native("recovery", ratings, links), "propagated_ternary") == list(labels)


@pytest.mark.parametrize(("ratings", "links", "error"), DECISIVE_SHAPED)
def test_decisive_error_equals_the_native_one(
    ratings: tuple[int, ...], links: tuple[str, ...], error: int | None
) -> None:
    published: list[int | None] = [-1 if at == error else None for at in range(len(ratings))]
    for record in (read_native("recovery", ratings, links), read_native("decisive_error", published)):
        (row,) = write_rows("processbench", make_example(record), LabelRule(label_set="decisive_error"))
        assert row["label"] == (-1 if error is None else error)
        first_errors = write_rows("first_errors", make_example(record), LabelRule(label_set="decisive_error"))
        assert [(row["first_error"], row["is_censored"]) for row in first_errors] == [(row["label"], False)]


@given(ratings=st.lists(RATINGS, min_size=1, max_size=8), data=st.data())
def test_stop_equals_processbench(ratings: list[int], data: st.DataObject) -> None:
    """The file of ProcessBench, and a reading of all steps with any marks, have the same first error."""
    label = ratings.index(-1) if -1 in ratings else -1
    item = {"problem": "P", "steps": [f"Step {number}." for number in range(len(ratings))], "label": label}
    (record,) = processbench.read(io.BytesIO(json.dumps(item).encode()))
    assert isinstance(record, TraceRecord)
    links = [data.draw(LINKS) if -1 in ratings[:at] else "" for at in range(len(ratings))]
    for each in (record, read_native("recovery", ratings, links)):
        (row,) = write_rows("processbench", make_example(each), LabelRule(label_set="stop"))
        assert row["label"] == label


@pytest.mark.parametrize(
    ("name", "native_labels"), [("propagated_ternary", RATINGS), ("carried_forward", st.sampled_from([-1, 1]))]
)
@given(data=st.data())
def test_every_native_labeling_has_a_reading(
    name: str, native_labels: st.SearchStrategy[int], data: st.DataObject
) -> None:
    """Mark each step that is not negative as independent; a step that depends on an error may have any own rating."""
    labels = data.draw(st.lists(native_labels, min_size=1, max_size=8))
    steps, has_error = [], False
    for label in labels:
        own = data.draw(RATINGS) if has_error and label == -1 else label
        steps.append(RatedStep(own, INDEPENDENT if has_error and label != -1 else ""))
        has_error = has_error or label == -1
    derived = label_sets.derive_labels(steps, protocol="recovery", label_set=name)
    assert derived.is_complete
    assert derived.labels == tuple(labels)


@pytest.mark.fault
@given(ratings=st.lists(RATINGS, min_size=1, max_size=8), data=st.data())
def test_every_decisive_error_has_a_reading(ratings: list[int], data: st.DataObject) -> None:
    """The trace recovers from all errors before the decisive one at that step, without one at the last step."""
    errors = [at for at, rating in enumerate(ratings) if rating == -1]
    error = data.draw(st.sampled_from([*errors, None]))
    if error is None and errors:
        ratings[-1] = 1
    place = len(ratings) - 1 if error is None else error
    links = [RECOVERS if at == place and -1 in ratings[:at] else "" for at in range(len(ratings))]
    published: list[int | None] = [-1 if at == error else None for at in range(len(ratings))]
    for record in (read_native("recovery", ratings, links), read_native("decisive_error", published)):
        (row,) = write_rows("first_errors", make_example(record), LabelRule(label_set="decisive_error"))
        assert (row["first_error"], row["is_censored"]) == (-1 if error is None else error, False)


# --- files -----------------------------------------------------------------------------------------------------------


def test_files_have_the_labels_of_the_set() -> None:
    record = read_native("recovery", (1, -1, 0, 1), ("", "", "", RECOVERS))
    labels = {
        name: [row["labels"] for row in write_rows("trl", make_example(record), LabelRule(label_set=name))]
        for name in LABEL_SETS
    }
    assert labels == {
        "as_rated": [[True, False]],
        "stop": [[True, False]],
        "carried_forward": [[True, False, False, True]],
        "propagated_ternary": [[True, False, False, True]],
        "decisive_error": [[True]],
    }
    table = write_rows("steps", make_example(record), LabelRule(label_set="propagated_ternary"))
    given_labels = [(row["ratings"][0]["rating"], row["ratings"][0]["set_label"]) for row in table]
    assert given_labels == [(1, 1), (-1, -1), (0, -1), (1, 1)]
    assert [row["ratings"][0]["error_link"] for row in table] == ["", "", "", RECOVERS]


@pytest.mark.parametrize("name", LABEL_SETS)
def test_native_files_come_back_with_their_rule(name: str) -> None:
    record = read_native("recovery", (1, -1, 0, 1), ("", "", INDEPENDENT, RECOVERS))
    (row,) = write_rows("native", make_example(record), LabelRule(label_set=name))  # type: ignore[arg-type]  # one of them
    (again,) = native.read(io.BytesIO(json.dumps(row).encode()))
    assert isinstance(again, TraceRecord)
    own = again.submissions[0]
    if name == "as_rated":
        assert own.turns == record.submissions[0].turns
        assert own.protocol == "recovery"
    else:
        assert own.protocol == label_sets.PROTOCOL_OF_SET[name]
        assert [turn.shown[0].rating for turn in own.turns if turn.shown] == row["labels"]
        assert derive(again, name) == row["labels"]


def test_readings_that_determine_nothing_are_counted() -> None:
    tally = RowTally()
    record = read_native("every_step", (1, -1, 1))
    assert not write_rows("native", make_example(record), LabelRule(label_set="decisive_error"), tally)
    assert sum(tally.left_out.values()) == 1
