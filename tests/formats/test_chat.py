"""Chats with step labels go out as they came in."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import chat, native
from formats.examples import LabelRule, OutputRow
from formats.records import TraceRecord
from tests.formats import prm800k_lines as prm
from tests.formats.export_rows import make_example, write_rows

OWN = {"labeling_protocol", "rater", "rater_kind", "rater_name", "label_source", "is_blind", "exposure", "machine"}
CALL = {"id": "c1", "type": "function", "function": {"name": "multiply", "arguments": '{"a": 7, "b": 8}'}}
PUBLISHED: dict[str, Any] = {
    "id": "x-1",
    "total_index": 7,
    "question": "What is 7 times 8?",
    "data_source": "sums",
    "model": "some-model",
    "messages": [
        {"role": "system", "content": "You are a calculator."},
        {"role": "user", "content": "What is 7 times 8?"},
        {"role": "assistant", "content": None, "reasoning_content": "I call the tool.", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "name": "multiply", "content": "56"},
        {"role": "assistant", "content": "One moment.", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "56"},
        {"role": "assistant", "content": "It is 54."},
    ],
    "step_labels": {"2": 1, "4": 0, "6": -1},
    "final_label": -1,
    "query_index": 3,
    "explanations": {"6": "It is 56."},
}


def read(item: object) -> TraceRecord:
    (record,) = chat.read(io.BytesIO(json.dumps(item).encode()))
    assert isinstance(record, TraceRecord), record
    return record


def write(record: TraceRecord, **rule: Any) -> OutputRow:
    (row,) = write_rows("chat", make_example(record), LabelRule(**rule))
    return row


@pytest.mark.parametrize(
    "changes",
    [{}, {"final_label": 1}, {"final_label": True}, {"final_label": 0}, {"final_label": None}, {"total_index": None}],
)
def test_published_record_goes_out_as_it_came_in(changes: dict[str, Any]) -> None:
    published = {key: value for key, value in (PUBLISHED | changes).items() if key != "total_index" or value}
    row = write(read(published))
    assert {key: value for key, value in row.items() if key not in OWN} == published
    assert type(row["final_label"]) is type(published["final_label"])


TEXT = st.text("ab \n", min_size=1, max_size=5)
CALLS = st.lists(
    st.fixed_dictionaries({"id": TEXT, "function": st.fixed_dictionaries({"name": TEXT, "arguments": TEXT})})
)
MESSAGES = st.lists(
    st.one_of(
        st.fixed_dictionaries({"role": st.sampled_from(["system", "user"]), "content": TEXT}),
        st.fixed_dictionaries(
            {"role": st.just("tool"), "content": TEXT}, optional={"tool_call_id": TEXT, "name": TEXT}
        ),
        st.fixed_dictionaries(
            {
                "role": st.just("assistant"),
                "content": st.one_of(
                    st.none(), TEXT, st.lists(st.builds(lambda text: {"type": "text", "text": text}, TEXT))
                ),
            },
            optional={"tool_calls": CALLS, "reasoning_content": TEXT},
        ),
    ),
    min_size=1,
    max_size=6,
).filter(lambda messages: any(message["role"] != "assistant" for message in messages))


@given(messages=MESSAGES, data=st.data())
@pytest.mark.fault
def test_any_chat_comes_back_equal(messages: list[dict[str, Any]], data: st.DataObject) -> None:
    own = [str(index) for index, message in enumerate(messages) if message["role"] == "assistant"]
    labels = {index: data.draw(st.sampled_from([-1, 0, 1])) for index in own}
    record = read({"question": "Q", "messages": messages, "step_labels": labels})
    again = read(write(record))
    assert again.steps == record.steps
    assert again.submissions[0].turns == record.submissions[0].turns
    assert again.submissions[0].protocol == "propagated"


def test_label_sets_and_raters_are_kept() -> None:
    record = read(PUBLISHED)
    assert write(record)["labeling_protocol"] == "propagated"
    row = write(record, label_set="stop")
    assert (row["labeling_protocol"], row["step_labels"]) == ("first_error", {"2": 1, "4": 0, "6": -1})
    again = read(row)
    assert (again.submissions[0].protocol, again.submissions[0].labeler) == ("first_error", chat.ANNOTATORS)
    machine = read(PUBLISHED | {"rater_kind": "machine", "rater_name": "judge: critic v3"}).submissions[0]
    assert (machine.machine, machine.labeler) == ("judge: critic v3", None)


def test_trace_without_context_becomes_the_answer_to_its_problem() -> None:
    record = prm.make_record(prm.make_step("a"), prm.make_step("b", -1, chosen=None), problem="P")
    row = write(record)
    assert [message["role"] for message in row["messages"]] == ["user", *["assistant"] * len(record.steps)]
    assert (row["messages"][0]["content"], row["step_labels"]) == ("P", {"1": 1, "2": -1})


def test_members_that_are_too_long_are_left_out() -> None:
    record = read(PUBLISHED | {"log": "x" * native.MAX_METADATA, "note": "short"})
    assert "note" in record.metadata
    assert "log" not in record.metadata
