"""Right and wrong steps, in the formats that know no more."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from formats import arrow_schema, catalog, labeled_paths, prm800k, processbench
from formats import prm800k as prm800k_reader
from formats.catalog import OUTPUT_FORMATS
from formats.examples import RowTally
from formats.labeled_paths import LabeledPath, LabelRule
from formats.records import OptionRecord, StepRecord, TraceRecord
from tests.formats import prm800k_lines as prm
from tests.formats.export_rows import make_example


def record(*steps: object, **changes: object) -> TraceRecord:
    found = prm800k_reader.parse_line(prm.make_line(**({"steps": list(steps)} if steps else {}), **changes), number=1)
    assert isinstance(found, TraceRecord)
    return found


def written(name: str, *found: TraceRecord, tally: RowTally | None = None) -> list[dict[str, Any]]:
    make = OUTPUT_FORMATS[name].rows
    assert make is not None
    return [
        row for each in found for row in make(make_example(each), LabelRule(), RowTally() if tally is None else tally)
    ]


def rows(found: TraceRecord, **rule: object) -> list[tuple[list[str], list[bool]]]:
    return [(row.steps, row.labels) for row in labeled_paths.build_labeled_paths(found, LabelRule(**rule))]  # type: ignore[arg-type]  # a rule by name


def test_rows_end_at_the_first_error() -> None:
    found = record(prm.make_step("a"), prm.make_step("b", -1, chosen=None), prm.make_step("c"))
    assert rows(found) == [(["a", "b"], [True, False])]


def test_rows_hold_no_label_after_the_last_rating() -> None:
    assert rows(record(prm.make_step("a"), prm.make_step("b", None), prm.make_step("c"))) == [(["a"], [True])]
    assert rows(record(prm.make_step("a", None, chosen=None))) == []


@pytest.mark.parametrize(
    ("neutral", "expected"),
    [("positive", (["a", "b"], [True, True])), ("negative", (["a"], [False])), ("drop", None)],
)
def test_rows_take_neutral_as_the_rule_says(neutral: str, expected: object) -> None:
    assert rows(record(prm.make_step("a", 0), prm.make_step("b")), neutral=neutral) == ([expected] if expected else [])


def test_rows_give_alternatives_rows_of_their_own() -> None:
    found = record(prm.make_step("a"), prm.make_step("b", -1, "x", "y", chosen=None))
    assert rows(found) == [
        (["a", "x"], [True, False]),
        (["a", "y"], [True, False]),
        (["a", "b"], [True, False]),
    ]
    assert rows(found, has_alternatives=False) == [(["a", "b"], [True, False])]


def test_rows_leave_steps_of_raters_out_unless_asked() -> None:
    human = {"text": "mine", "rating": None, "source": "human", "flagged": False}
    found = record(prm.make_step("a"), {"completions": [], "human_completion": human, "chosen_completion": None})
    assert rows(found) == [(["a"], [True])]
    assert rows(found, human_steps="positive") == [(["a", "mine"], [True, True])]


def test_rows_put_what_an_agent_saw_into_the_prompt() -> None:
    found = record(prm.make_step("do"), prm.make_step("see", None), prm.make_step("done", -1, chosen=None))
    found.steps = [StepRecord([OptionRecord(text)], is_rateable=text != "see") for text in ("do", "see", "done")]
    problem = found.problem.text
    assert list(labeled_paths.build_labeled_paths(found, LabelRule())) == [
        LabeledPath(problem, ["do"], [True]),
        LabeledPath(f"{problem}\n\ndo\n\nsee", ["done"], [False]),
    ]


@settings(deadline=None)  # pyarrow looks for pandas when it makes its first batch
@given(prm.lines())
def test_writers_hold_no_label_after_an_error_and_no_empty_row(line: bytes) -> None:
    found = prm800k_reader.parse_line(line, number=1)
    assert isinstance(found, TraceRecord)
    for row in written("trl", found):
        assert all(type(label) is bool for label in row["labels"])
        assert len(row["labels"]) == len(row["completions"]) > 0
        assert all(row["labels"][:-1])
    assert list(prm800k.write([found])) == [line + b"\n"]
    for name, each in OUTPUT_FORMATS.items():
        schema = arrow_schema.make_schema(each.columns)
        if each.is_table:
            arrow_schema.make_batch(written(name, found), schema)


def test_write_math_shepherd_is_read_back_alike() -> None:
    found = record(prm.make_step("2 + 2 = 4"), prm.make_step("4 + 2 = 7", -1, chosen=None))
    line = json.dumps(written("math_shepherd", found)[0]).encode()
    (again,) = catalog.get_input_format("math_shepherd").read(io.BytesIO(line))
    assert isinstance(again, TraceRecord)
    assert again.problem.text == found.problem.text
    assert [[j.rating for j in turn.shown or ()] for turn in again.submissions[0].turns] == [[1], [-1]]


def test_write_math_shepherd_refuses_a_tag_in_the_text() -> None:
    tally = RowTally()
    assert not written("math_shepherd", record(prm.make_step("a ки")), tally=tally)
    assert tally.left_out == {'the tag "ки" is in the text': 1}


def test_write_rlhflow_speaks_in_turns() -> None:
    (row,) = written("rlhflow", record(prm.make_step("a"), prm.make_step("b", -1, chosen=None)))
    said = row["conversations"]
    assert [message["content"] for message in said] == ["What is 2 + 2 + 2? a", "+", "b", "-"]


@pytest.mark.parametrize("name", ["gsm8k", "math"])
def test_write_processbench_gives_the_source_back(shared_data: Path, name: str) -> None:
    source = shared_data / f"processbench/{name}.json"
    with source.open("rb") as stream:
        found = [
            item for item in catalog.get_input_format("processbench").read(stream) if isinstance(item, TraceRecord)
        ]
    assert written("processbench", *found) == json.loads(source.read_text())


def test_write_processbench_leaves_out_what_nobody_decided() -> None:
    tally = RowTally()
    given_up = record(prm.make_step("2 + 2 = 4"), finish_reason="give_up")
    whole = record(prm.make_step("2 + 2 = 4"), prm.make_step("4 + 2 = 7"), prm.make_step("So 7."))
    assert [row["label"] for row in written("processbench", given_up, whole, tally=tally)] == [-1]
    assert tally.left_out == {processbench.UNDECIDED: 1}
