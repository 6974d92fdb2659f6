"""Metadata of native records, renamed keys of JSON records, and records that are written and read again."""

import io
import json
from typing import Any

import pytest

from formats import catalog, native, privacy
from formats.catalog import UnknownFormat
from formats.records import BadLine, JudgmentRecord, SubmissionRecord, TraceRecord, TurnRecord
from labeling.traces import trace_rows
from tests.formats.export_rows import make_example, write_rows
from tests.formats.test_record_reader_tables import parquet_of

EXTRA = {"level": 5, "tags": ["a", "b"], "mail": {"to": "ada@example.org"}}


def read(
    *records: object, format: str = "native", columns: dict[str, str] | None = None
) -> list[TraceRecord | BadLine]:
    content = b"\n".join(json.dumps(record).encode() for record in records)
    return list(catalog.read_traces(io.BytesIO(content), format=format, columns=columns))


def read_one(record: object, **options: Any) -> TraceRecord:
    (made,) = read(record, **options)
    assert isinstance(made, TraceRecord), made
    return made


def read_bad(record: object, **options: Any) -> BadLine:
    bad = read(record, **options)[0]
    assert isinstance(bad, BadLine)
    return bad


# --- metadata --------------------------------------------------------------------------------------------------------


def test_unknown_fields_become_metadata() -> None:
    made = read_one(
        {"problem": "p", "level": 5, "steps": ["a"], "metadata": {"tags": ["a", "b"]}, "mail": EXTRA["mail"]}
    )
    assert made.metadata == EXTRA
    assert "ada@example.org" in privacy.record_texts(made)
    assert privacy.mask_record(made).metadata["mail"] == {"to": "[e-mail]"}


@pytest.mark.parametrize("table", ["csv", "parquet"])
def test_unknown_columns_become_metadata(table: str) -> None:
    row: dict[str, object] = {"problem": "p", "text": "One.", "level": 5, "metadata": json.dumps({"a": 1})}
    content = b'problem,text,level,metadata\np,One.,5,"{""a"": 1}"\n' if table == "csv" else parquet_of([row])
    (made,) = catalog.read_traces(io.BytesIO(content), format="native", table=table)
    assert isinstance(made, TraceRecord)
    assert made.metadata == {"a": 1, "level": "5" if table == "csv" else 5}


@pytest.mark.parametrize(
    ("fields", "column", "fact"),
    [
        ({"anwser": "4"}, 44, '"answer"'),
        ({"label": [1]}, 43, '"labels"'),
        ({"level": 1, "metadata": {"level": 2}}, 43, '"level"'),
        ({"metadata": "[1]"}, 46, "JSON object"),
        ({"notes": "x" * native.MAX_METADATA}, 1, "100,000"),
    ],
)
def test_metadata_is_refused_at_its_place(fields: dict[str, object], column: int, fact: str) -> None:
    bad = read_bad({"problem": "p", "steps": ["a"], **fields})
    assert fact in bad.reason
    assert bad.column == column


def test_metadata_cannot_hold_a_number_that_is_too_large() -> None:
    (bad,) = native.read(io.BytesIO(b'{"problem": "p", "steps": ["a"], "level": 1e400}'))
    assert isinstance(bad, BadLine)


# --- renamed keys ----------------------------------------------------------------------------------------------------

RENAMED = {"question": "problem", "cot": "steps", "id": ""}


def test_keys_of_json_are_renamed_and_left_out() -> None:
    record = {"question": "p", "id": 7, "cot": ["a", "b"], "level": 5}
    assert catalog.detect_format(io.BytesIO(json.dumps(record).encode()), columns=RENAMED).name == "native"
    made = read_one(record, columns=RENAMED)
    assert (made.problem.text, len(made.steps), made.metadata) == ("p", 2, {"level": 5})
    shepherd = {"q": "p Step 1: a ки", "label": "p Step 1: a +"}
    assert len(read_one(shepherd, format="math_shepherd", columns={"q": "input"}).steps) == 1
    with pytest.raises(UnknownFormat):
        catalog.read_traces(io.BytesIO(b"{}"), format="prm800k", columns=RENAMED)


def test_errors_of_renamed_records_have_their_place_in_the_file() -> None:
    assert read_bad({"question": "p", "id": 1, "cot": 3}, columns=RENAMED).column == 35
    pretty = json.dumps({"question": "p", "id": 1, "cot": 3}, indent=1).encode()
    (bad,) = catalog.read_traces(io.BytesIO(pretty), format="native", columns=RENAMED)
    assert isinstance(bad, BadLine)
    assert (bad.line, bad.column) == (4, 9)
    twice = read_bad({"question": "p", "problem": "q", "cot": ["a"], "id": 1}, columns=RENAMED)
    assert twice.column == 30
    assert read_bad([1], columns=RENAMED).column == 2
    broken, _missing = catalog.read_traces(io.BytesIO(b'{"question": }'), format="native", columns=RENAMED)
    assert isinstance(broken, BadLine)
    assert broken.column == 14


def test_a_renamed_key_that_no_record_has_is_refused() -> None:
    made, bad = read({"problem": "p", "steps": ["a"]}, columns={"qestion": "problem"})
    assert isinstance(made, TraceRecord)
    assert isinstance(bad, BadLine)
    assert "qestion" in bad.reason


# --- written and read again ------------------------------------------------------------------------------------------

RECORDS: list[dict[str, object]] = [
    {"problem": "p", "steps": ["a", {"text": "b", "alternatives": ["c"]}], "labels": [1, -1], "labeler": "r1"},
    {"problem": "p", "answer": None, "text": "One.\n\nTwo.\n\nThree.", "labels": [1, None, 0], "final_answer": "3"},
    {"problem": "p", "solution": "s", "steps": ["a", "b", "c"], "labels": [1, 0.25], "level": 5, "is_right": True},
    {"problem": "p", "steps": ["a"], "labels": [1], "rater_kind": "machine", "rater_name": "judge: x", "domain": "d"},
    {"problem": "p", "steps": [{"text": "a", "kind": "user", "rateable": False}, "b"], "verifier_score": 0.5},
    {"problem": "p", "steps": [{"text": "a", "agent": "research/browse"}, "b"]},
]


@pytest.mark.parametrize("record", RECORDS)
def test_written_records_are_the_same_traces(record: dict[str, object]) -> None:
    made = read_one({"labels": [1], **record})
    provenance = made.provenance
    facts: dict[str, Any] = {"base_model": "", "policy": "", "segmenter": provenance.segmenter if provenance else ""}
    (row,) = write_rows("native", make_example(made, **facts))
    again = read_one(row)
    one, other = (
        trace_rows.digest_trace(each, problem=trace_rows.digest_problem(each.problem), occurrence=0)
        for each in (made, again)
    )
    assert one == other
    assert (again.metadata, again.is_right) == (made.metadata, made.is_right)
    assert [step.agent for step in again.steps] == [step.agent for step in made.steps]
    assert again.submissions[0].machine == made.submissions[0].machine
    assert again.submissions[0].labeler == made.submissions[0].labeler
    assert [turn.shown for turn in again.submissions[0].turns] == [turn.shown for turn in made.submissions[0].turns]


def test_ratings_after_the_end_of_a_trace_are_left_out() -> None:
    record = read_one({"problem": "p", "steps": ["a"]})
    record.submissions = [SubmissionRecord([TurnRecord(1, [JudgmentRecord("b", 1)]), TurnRecord(0, None)])]
    (row,) = write_rows("native", make_example(record))
    assert row["labels"] == [None]


# --- subagents -------------------------------------------------------------------------------------------------------


def test_steps_of_subagents_are_named() -> None:
    record = {"problem": "p", "steps": ["One.", {"text": "Two.", "agent": "research/browse"}]}
    assert [step.agent for step in read_one(record).steps] == ["", "research/browse"]


def test_messages_of_a_chat_that_a_call_started_belong_to_its_subagent() -> None:
    def message(text: str, parent: str | None, **call: Any) -> dict[str, Any]:
        content = [{"type": "text", "text": text}] + ([{"type": "tool_use", **call}] if call else [])
        return {"role": "assistant", "content": content, "parent_tool_use_id": parent}

    chat = [
        {"role": "user", "content": "Find it."},
        message("I ask.", None, id="t1", name="Task", input={"subagent_type": "research"}),
        message("I browse.", "t1", id="t2", name="open/page", input=[1]),
        message("Found.", "t2"),
        message("Done.", None),
    ]
    steps = read_one({"messages": chat}, format="chat").steps
    assert [step.agent for step in steps] == ["", "", "research", "research/open page", ""]


def test_explanations_come_back_with_the_labels() -> None:
    item = {
        "problem": "P",
        "steps": ["a", "b", "c"],
        "labels": [1, -1, -1],
        "error_categories": ["", "misread other", None],
        "error_severities": [None, 3, 1],
        "error_reasons": ["", "It says 7.", ""],
    }
    (record,) = native.read(io.BytesIO(json.dumps(item).encode()))
    assert isinstance(record, TraceRecord)
    given = [each for turn in record.submissions[0].turns for each in turn.shown or ()]
    assert [each.category for each in given] == ["", "misread other", ""]
    assert [each.severity for each in given] == [None, 3, 1]
    (row,) = write_rows("native", make_example(record))
    assert (row["error_categories"], row["error_severities"], row["error_links"]) == (
        ["", "misread other", ""],
        [None, 3, 1],
        None,
    )
    (again,) = native.read(io.BytesIO(json.dumps(row).encode()))
    assert isinstance(again, TraceRecord)
    assert again.submissions[0].turns == record.submissions[0].turns


@pytest.mark.parametrize(
    "changes", [{"error_severities": [1, 1]}, {"error_severities": [4]}, {"error_links": ["maybe"]}]
)
def test_explanations_that_fit_no_label_are_refused(changes: dict[str, object]) -> None:
    item = {"problem": "P", "steps": ["a"], "labels": [-1], **changes}
    (bad,) = native.read(io.BytesIO(json.dumps(item).encode()))
    assert isinstance(bad, BadLine)
