"""Records of TRAIL, AgentProcessBench and AgentRewardBench come back as they were, with members that no one knows."""

import io
import json
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import privacy
from formats.catalog import INPUT_FORMATS
from formats.records import SubmissionRecord, TraceRecord
from tests.formats.export_rows import make_example, write_rows
from tests.formats.test_agent_reward_bench import ROWS, TRAJECTORY
from tests.formats.test_trail import LABELS, TRACE, reply, span

TEXTS = st.text("ab\n é@", max_size=5)
JSON_VALUES: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
UNKNOWN = st.dictionaries(st.sampled_from(["x_time", "x_cost", "x_note"]), JSON_VALUES, max_size=2)
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 7}'}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "Add."},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "8"},
    {"role": "assistant", "content": [{"type": "text", "text": "It is"}, {"type": "text", "text": "8."}]},
]
STEP_LABELS = {"1": 1, "3": -1}


def read_one(format: str, record: object) -> TraceRecord:
    (made,) = INPUT_FORMATS[format].read(io.BytesIO(json.dumps(record).encode()))
    assert isinstance(made, TraceRecord), made
    return made


def write_again(format: str, trace: TraceRecord, *, output: str = "") -> list[dict[str, Any]]:
    """Write a row for each submission, or one row for all of them if the format has them together."""
    each = [msgspec.structs.replace(trace, submissions=[submission]) for submission in trace.submissions]
    return write_rows(output or format, make_example(*each))


@pytest.mark.fault
@given(of_trace=UNKNOWN, of_span=UNKNOWN, of_record=UNKNOWN)
def test_trail_records_come_back(of_trace: dict[str, Any], of_span: dict[str, Any], of_record: dict[str, Any]) -> None:
    spans: Any = TRACE["spans"]
    record = {**of_record, "trace": {**TRACE, **of_trace, "spans": [{**spans[0], **of_span}]}, "labels": LABELS}
    [row] = write_again("trail", read_one("trail", record))
    labels = row.pop("labels")
    assert row == {**of_record, "trace": record["trace"]}
    assert {key: labels[key] for key in LABELS} == LABELS
    texts = {**of_record, "trace": json.dumps(record["trace"]), "labels": json.dumps(LABELS)}
    [published] = write_again("trail", read_one("trail", texts))
    assert published["trace"] == texts["trace"]
    assert read_one("trail", published | {"labels": json.dumps({**json.loads(published["labels"]), "rater": None})})


@pytest.mark.fault
@given(of_message=UNKNOWN, of_record=UNKNOWN, key=st.sampled_from(["messages", "traj"]), final=st.sampled_from([1, -1]))
def test_agent_process_bench_records_come_back(
    of_message: dict[str, Any], of_record: dict[str, Any], key: str, final: int
) -> None:
    turns = [*MESSAGES[:-1], {**MESSAGES[-1], **of_message}]
    record = {**of_record, "id": 7, "reward": 1.0, key: turns, "step_labels": STEP_LABELS, "final_label": final}
    trace = read_one("chat", record)
    [row] = write_again("chat", trace)
    assert {key: row[key] for key in record} == record
    again = read_one("chat", {**row, "rater": None})
    assert (again.steps, again.submissions) == (trace.steps, trace.submissions)


@given(of_step=UNKNOWN, of_record=UNKNOWN)
def test_agent_reward_bench_records_come_back(of_step: dict[str, Any], of_record: dict[str, Any]) -> None:
    first, *others = cast(list[Any], TRAJECTORY["steps"])
    steps = [{**first, **of_step}, *others]
    record = {**TRAJECTORY, **of_record, "steps": steps, "annotations": ROWS}
    trace = read_one("agent_reward_bench", record)
    assert write_again("agent_reward_bench", trace, output="agent_reward_traces") == [record]


def test_plain_chats_need_no_original() -> None:
    plain = {"id": "x", "messages": [MESSAGES[0], {"role": "assistant", "content": "It is 8."}], "x_note": {"a": 1}}
    assert read_one("chat", plain).original is None
    assert read_one("chat", {**plain, "info": {"cost": 1}}).original is not None


@pytest.mark.parametrize(("output", "format"), [("trail", "trail"), ("agent_reward_traces", "agent_reward_bench")])
def test_traces_of_other_formats_can_be_read_again(output: str, format: str) -> None:
    trace = read_one("chat", {"id": "x", "question": "Add.", "messages": MESSAGES, "step_labels": STEP_LABELS})
    trace.submissions[0].answers = {"final_label": "-1"}
    [row] = write_again("chat", trace, output=output)
    again = read_one(format, row)
    assert again.problem.text == "Add."
    assert list_texts(again) == list_texts(trace)
    if format == "trail":
        assert again.submissions[0].turns[1].path_rating() == -1


def list_texts(trace: TraceRecord) -> list[tuple[str, str]]:
    return [(step.kind, step.options[0].text) for step in trace.steps if step.is_rateable]


def test_members_that_are_not_shown_are_masked_and_counted() -> None:
    record = {**TRAJECTORY, "note": "Write to a@example.org or b@example.org."}
    trace = read_one("agent_reward_bench", record)
    trace.submissions = [SubmissionRecord([], labeler="r", answers={"looping": "no"})]
    assert privacy.count_private_in(trace)["email"] == 2
    [row] = write_again("agent_reward_bench", privacy.mask_record(trace), output="agent_reward_traces")
    assert row["note"] == "Write to [e-mail] or [e-mail]."


def test_members_that_are_json_as_text_are_masked_inside() -> None:
    content = "Call:\n+49 30 901820 or\nüa@example.org"
    spans = [span("root", "AGENT", reply("plan", "Ask."), input__value='{"task": "T."}', note=content)]
    record = {"trace": json.dumps({"trace_id": "t-1", "spans": spans}), "labels": json.dumps({"errors": []})}
    trace = read_one("trail", record)
    assert privacy.count_private_in(trace) == {"email": 1, "phone": 1}
    [row] = write_again("trail", privacy.mask_record(trace))
    assert json.loads(row["trace"])["spans"][0]["span_attributes"]["note"] == "Call:\n[telephone] or\nü[e-mail]"
