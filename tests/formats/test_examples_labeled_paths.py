"""Labeled paths, and the formats that are written from them."""

import io
import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings

from formats import catalog, examples, math_shepherd, prm800k, processbench
from formats.catalog import OUTPUT_FORMATS
from formats.examples import LabeledPath, LabelRule, RowTally, make_arrow_schema
from formats.raw_values import RawValue
from formats.records import OptionRecord, StepRecord, TraceRecord
from tests.formats import prm800k_lines as prm
from tests.formats.export_rows import make_example, write_rows
from tests.formats.prm800k_lines import make_record


def written(name: str, *records: TraceRecord, tally: RowTally | None = None) -> list[dict[str, Any]]:
    return [row for record in records for row in write_rows(name, make_example(record), tally=tally)]


def rows(found: TraceRecord, **rule: object) -> list[tuple[list[str], list[bool]]]:
    return [(row.steps, row.labels) for row in examples.build_labeled_paths(found, LabelRule(**rule))]  # type: ignore[arg-type]  # a rule by name


def test_paths_end_at_the_first_error() -> None:
    found = make_record(prm.make_step("a"), prm.make_step("b", -1, chosen=None), prm.make_step("c"))
    assert rows(found) == [(["a", "b"], [True, False])]


def test_paths_end_after_the_last_rating() -> None:
    assert rows(make_record(prm.make_step("a"), prm.make_step("b", None), prm.make_step("c"))) == [(["a"], [True])]
    assert rows(make_record(prm.make_step("a", None, chosen=None))) == []


@pytest.mark.parametrize(
    ("neutral", "expected"),
    [("positive", (["a", "b"], [True, True])), ("negative", (["a"], [False])), ("drop", None)],
)
def test_paths_label_neutral_steps_by_the_rule(neutral: str, expected: object) -> None:
    assert rows(make_record(prm.make_step("a", 0), prm.make_step("b")), neutral=neutral) == (
        [expected] if expected else []
    )


def test_alternatives_make_paths_of_their_own() -> None:
    found = make_record(prm.make_step("a"), prm.make_step("b", -1, "x", "y", chosen=None))
    assert rows(found) == [
        (["a", "x"], [True, False]),
        (["a", "y"], [True, False]),
        (["a", "b"], [True, False]),
    ]
    assert rows(found, has_alternatives=False) == [(["a", "b"], [True, False])]


def test_paths_end_before_written_steps_unless_the_rule_takes_them() -> None:
    human = {"text": "mine", "rating": None, "source": "human", "flagged": False}
    found = make_record(prm.make_step("a"), {"completions": [], "human_completion": human, "chosen_completion": None})
    assert rows(found) == [(["a"], [True])]
    assert rows(found, human_steps="positive") == [(["a", "mine"], [True, True])]


def test_paths_put_what_an_agent_saw_into_the_prompt() -> None:
    found = make_record(prm.make_step("do"), prm.make_step("see", None), prm.make_step("done", -1, chosen=None))
    found.steps = [StepRecord([OptionRecord(text)], is_rateable=text != "see") for text in ("do", "see", "done")]
    problem = found.problem.text
    assert list(examples.build_labeled_paths(found, LabelRule())) == [
        LabeledPath(problem, ["do"], [True]),
        LabeledPath(f"{problem}\n\ndo\n\nsee", ["done"], [False]),
    ]


@pytest.mark.fault
@settings(deadline=None)  # pyarrow imports pandas for its first batch
@given(prm.lines())
def test_writers_write_no_label_after_an_error_and_no_empty_row(line: bytes) -> None:
    found = prm800k.parse_value(RawValue(line, 1))
    assert isinstance(found, TraceRecord)
    for row in written("trl", found):
        assert all(type(label) is bool for label in row["labels"])
        assert len(row["labels"]) == len(row["completions"]) > 0
        assert all(row["labels"][:-1])
    assert list(prm800k.write([found])) == [line + b"\n"]
    for name, each in OUTPUT_FORMATS.items():
        schema = make_arrow_schema(each.columns)
        if each.is_table:
            pyarrow.RecordBatch.from_pylist(written(name, found), schema=schema)


def test_math_shepherd_is_read_back_the_same() -> None:
    found = make_record(prm.make_step("2 + 2 = 4"), prm.make_step("4 + 2 = 7", -1, chosen=None))
    line = json.dumps(written("math_shepherd", found)[0]).encode()
    (again,) = catalog.get_input_format("math_shepherd").read(io.BytesIO(line))
    assert isinstance(again, TraceRecord)
    assert again.problem.text == found.problem.text
    assert [[j.rating for j in turn.shown or ()] for turn in again.submissions[0].turns] == [[1], [-1]]


def test_math_shepherd_leaves_out_a_text_with_the_tag() -> None:
    tally = RowTally()
    assert not written("math_shepherd", make_record(prm.make_step("a ки")), tally=tally)
    assert tally.left_out == {math_shepherd.TAG_IN_TEXT: 1}


def test_rlhflow_alternates_steps_and_signs() -> None:
    (row,) = written("rlhflow", make_record(prm.make_step("a"), prm.make_step("b", -1, chosen=None)))
    assert [message["content"] for message in row["conversations"]] == ["What is 2 + 2 + 2? a", "+", "b", "-"]


@pytest.mark.parametrize("name", ["gsm8k", "math"])
def test_processbench_is_written_as_it_was_read(shared_data: Path, name: str) -> None:
    source = shared_data / f"processbench/{name}.json"
    with source.open("rb") as stream:
        found = [
            item for item in catalog.get_input_format("processbench").read(stream) if isinstance(item, TraceRecord)
        ]
    assert written("processbench", *found) == json.loads(source.read_text())


def test_processbench_leaves_out_unfinished_submissions() -> None:
    tally = RowTally()
    given_up = make_record(prm.make_step("2 + 2 = 4"), finish_reason="give_up")
    complete = make_record(prm.make_step("2 + 2 = 4"), prm.make_step("4 + 2 = 7"), prm.make_step("So 7."))
    assert [row["label"] for row in written("processbench", given_up, complete, tally=tally)] == [-1]
    assert tally.left_out == {processbench.UNDECIDED: 1}
