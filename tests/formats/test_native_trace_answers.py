"""Answers on the whole trace in records: read, written, read again, and masked."""

import io
import json
from typing import Any

import pytest

from formats import chat, native, privacy
from formats.records import BadLine, TraceRecord
from tests.formats.export_rows import make_example, write_rows

ANSWERS = {"final_label": "-1", "note": "Mail ada@example.org"}
NATIVE = {"problem": "p", "steps": ["a"], "labels": [1], "labeler": "r1"}
CHAT = {
    "id": "x-1",
    "messages": [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "Done."}],
    "step_labels": {"1": 1},
    "final_label": -1,
}


def read_one(format: Any, record: object) -> TraceRecord:
    (made,) = format.read(io.BytesIO(json.dumps(record).encode()))
    assert isinstance(made, TraceRecord), made
    return made


@pytest.mark.parametrize("answers", [ANSWERS, json.dumps(ANSWERS)])
def test_native_answers_come_back(answers: object) -> None:
    record = read_one(native, {**NATIVE, "trace_answers": answers})
    assert record.submissions[0].answers == ANSWERS
    [row] = write_rows("native", make_example(record))
    assert json.loads(row["trace_answers"]) == ANSWERS
    assert read_one(native, row).submissions == record.submissions
    [step_row] = write_rows("steps", make_example(record))
    assert json.loads(step_row["ratings"][0]["trace_answers"]) == ANSWERS
    assert json.loads(write_rows("first_errors", make_example(record))[0]["trace_answers"]) == ANSWERS


@pytest.mark.parametrize(
    "wrong",
    [
        *({"trace_answers": each} for each in ("[1]", {"x" * 41: "1"}, {"a": [1]})),
        {"omissions": ["a", "b"]},
        *(
            {"error_evidence": [each]}
            for each in ({"step": 1, "text": "a"}, {"step": 0}, {"step": 0, "text": "a", "x": 1})
        ),
    ],
)
def test_odd_answers_quotes_and_omissions_are_refused(wrong: dict[str, object]) -> None:
    (bad,) = native.read(io.BytesIO(json.dumps({**NATIVE, **wrong}).encode()))
    assert isinstance(bad, BadLine)


def test_final_label_of_agent_process_bench_is_an_answer() -> None:
    record = read_one(chat, CHAT)
    assert record.submissions[0].answers == {"final_label": "-1"}
    [row] = write_rows("chat", make_example(record))
    assert (row["final_label"], "trace_answers" in row) == (-1, False)
    record.submissions[0].answers = {"final_label": "1", "looping": "no"}  # a person differs from the outcome
    [row] = write_rows("chat", make_example(record))
    assert (row["final_label"], row["trace_answers"]) == (1, {"looping": "no"})
    assert read_one(chat, row).submissions[0].answers == {"final_label": "1", "looping": "no"}
    assert read_one(chat, {**CHAT, "final_label": False}).submissions[0].answers == {}


def test_private_data_in_answers_is_found_and_masked() -> None:
    record = read_one(native, {**NATIVE, "trace_answers": ANSWERS})
    assert privacy.count_private_in(record) == {"email": 1}
    assert privacy.mask_record(record).submissions[0].answers["note"] == "Mail [e-mail]"


def test_native_quotes_and_omissions_come_back() -> None:
    quotes = [{"step": 0, "text": "a", "start": 0, "end": 1}, {"step": 0, "text": "b", "kind": "k", "severity": 2}]
    record = read_one(native, {**NATIVE, "labels": [-1], "error_evidence": quotes, "omissions": ["More."]})
    [row] = write_rows("native", make_example(record))
    assert [{name: each[name] for name in quotes[at]} for at, each in enumerate(row["error_evidence"])] == quotes
    assert row["omissions"] == ["More."]
    assert read_one(native, row).submissions == record.submissions
