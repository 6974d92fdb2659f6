"""TRAIL: spans become steps, errors and scores come back as they were."""

import io
import json
from typing import Any

import pytest

from formats import trail
from formats.records import BadLine, EvidenceRecord, JudgmentRecord, SubmissionRecord, TraceRecord, TurnRecord
from tests.formats.export_rows import make_example, write_rows


def span(key: str, kind: str = "", *children: dict[str, Any], name: str = "x", **attributes: Any) -> dict[str, Any]:
    given = {name.replace("__", "."): value for name, value in attributes.items()}
    kinds = {"openinference.span.kind": kind} if kind else {}
    return {"span_id": key, "span_name": name, "span_attributes": kinds | given, "child_spans": list(children)}


def reply(key: str, text: str, **more: Any) -> dict[str, Any]:
    return span(key, "LLM", llm__model_name="m", llm__output_messages__0__message__content=text, **more)


CALL = {
    "llm__output_messages__0__message__tool_calls__0__tool_call__function__name": "search",
    "llm__output_messages__0__message__tool_calls__0__tool_call__function__arguments": '{"q": 7}',
}
TOLD = {
    "llm__input_messages__0__message__role": "system",
    "llm__input_messages__0__message__content": "Be brief.",
    "llm__input_messages__1__message__role": "user",
    "llm__input_messages__1__message__content": "What is 7 times 8?",
    "llm__input_messages__2__message__role": "assistant",
}
TRACE = {
    "trace_id": "t-1",
    "spans": [
        span(
            "root",
            "",
            span(
                "agent",
                "AGENT",
                reply("plan", "Plan: it is 54.", **TOLD),
                span(
                    "step",
                    "CHAIN",
                    span("tool", "TOOL", tool__name="add", input__value="7", output__value="8"),
                    output__value="Log.",
                ),
                span("sub", "AGENT", reply("inner", "", **CALL), name="ToolCallingAgent.run"),
                name="CodeAgent.run",
                input__value='{"task": "Multiply."}',
            ),
        )
    ],
}
LABELS = {
    "errors": [
        {"category": "Tool-related", "location": "inner", "evidence": "x", "description": "No.", "impact": "LOW"},
        {"category": "Goal deviation", "location": "plan", "evidence": "54", "description": "56.", "impact": "HIGH"},
        {"category": "Language-only", "location": "plan", "evidence": "none", "impact": "LOW"},
        {"category": "Other", "location": "gone", "evidence": "", "description": "d", "impact": "MEDIUM"},
    ],
    "scores": [{"reliability_score": 2, "plan_opt_score": 3.0, "security_reasoning": "5", "overall": 2.5}],
}


def read(record: object) -> TraceRecord | BadLine:
    (made,) = trail.read(io.BytesIO(json.dumps(record).encode()))
    return made


def read_one(record: object) -> TraceRecord:
    made = read(record)
    assert isinstance(made, TraceRecord), made
    return made


@pytest.mark.parametrize("as_text", [False, True])
def test_errors_and_scores_come_back(as_text: bool) -> None:
    record = {"trace": TRACE, "labels": LABELS}
    made = read_one({key: json.dumps(value) for key, value in record.items()} if as_text else record)
    [row] = write_rows("trail", make_example(made))
    labels = json.loads(row["labels"]) if as_text else row["labels"]
    assert {name: labels[name] for name in LABELS} == LABELS
    assert labels["trace_id"] == "t-1"
    assert read_one({"trace": TRACE, "labels": {**labels, "rater": None}}).submissions == made.submissions


def test_spans_become_steps() -> None:
    made = read_one({"trace": TRACE})
    assert (made.problem.text, made.ref, made.submissions) == ("Multiply.", "t-1", [])
    assert made.provenance is not None
    assert made.provenance.policy == "m"
    assert [(step.kind, step.is_rateable, step.agent, step.options[0].text) for step in made.steps] == [
        ("system", False, "", "Be brief."),
        ("user", False, "", "What is 7 times 8?"),
        ("reasoning", True, "", "Plan: it is 54."),
        ("action", True, "", "add(7)\n8"),
        ("observation", False, "", "Log."),
        ("action", True, "ToolCallingAgent", 'search({"q": 7})'),
    ]


def test_errors_are_negative_ratings_with_evidence() -> None:
    [submission] = read_one({"trace": TRACE, "labels": LABELS}).submissions
    assert [(turn.position, turn.path_rating()) for turn in submission.turns] == [(2, -1), (3, 1), (5, -1)]
    [plan] = submission.turns[0].shown or []
    assert (plan.category, plan.severity, plan.reason) == ("goal-deviation language-only", 3, "56.")
    assert [(quote.text, quote.start, quote.number) for quote in plan.evidence] == [("54", 12, 1), ("none", None, 2)]
    assert submission.answers["overall"] == "2.5"


def test_errors_marked_here_have_a_row_for_each_kind() -> None:
    made = read_one({"trace": TRACE})
    shown = JudgmentRecord("Plan", -1, category="tool-related new", severity=2, evidence=[EvidenceRecord("a", 0, 1)])
    made.submissions = [SubmissionRecord([TurnRecord(2, shown=[shown])], labeler="r", answers={"final_label": "1"})]
    [row] = write_rows("trail", make_example(made))
    labels = row["labels"]
    assert labels["errors"] == [
        {"category": "Tool-related", "location": "plan", "evidence": "a", "impact": "MEDIUM"},
        {"category": "new", "location": "plan", "evidence": "a", "impact": "MEDIUM"},
    ]
    assert (labels["scores"], labels["trace_answers"]) == ([], {"final_label": "1"})


def nested(depth: int) -> dict[str, Any]:
    inner = reply("x", "y")
    for _ in range(depth):
        inner = span("x", "", inner)
    return {"trace_id": "t", "spans": [inner]}


@pytest.mark.parametrize(
    "record",
    [
        {"trace": {"trace_id": "t", "spans": []}},
        {"trace": '{"spans": ['},
        {"trace": json.dumps(TRACE).replace("Log.", "\\u0000")},
        {"trace": TRACE, "labels": {"errors": [{"location": "plan", "note": "x"}]}},
        {"trace": TRACE, "labels": {"errors": [{"location": "plan", "impact": "HUGE"}]}},
        {"trace": TRACE, "labels": {"scores": [{"beauty": 1}]}},
        {"trace": TRACE, "labels": {"scores": [{}, {}]}},
        {"trace": nested(101)},
    ],
)
def test_odd_records_are_refused(record: object) -> None:
    assert isinstance(read(record), BadLine)
