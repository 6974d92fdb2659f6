"""Messages of chats and agents that are split into several steps."""

import io
import json
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import catalog, segmenters
from formats.messages import MessagePart, StepPlace, find_message_parts, split_message
from formats.records import OptionRecord, PartRecord, StepRecord, TraceRecord

TEXTS = st.text(st.sampled_from("aA.\n `#1)"), max_size=30)
PARTS = st.lists(st.builds(PartRecord, st.sampled_from(["text", "call"]), TEXTS), max_size=4).map(tuple)
NAMES = st.sampled_from([*segmenters.SEGMENTER_NAMES, "separator 1: 1"])
USER = {"role": "user", "content": "Fix it."}
CALL = {"id": "c1", "function": {"name": "run", "arguments": "{}"}}
CHAT = {
    "messages": [
        USER,
        {"role": "assistant", "content": "I look. Then I run it.", "tool_calls": [CALL]},
        {"role": "tool", "content": "One. Two."},
        {"role": "assistant", "content": "It works. So I stop."},
    ]
}
SWE = {
    "trajectory": [
        {"thought": "I look. Then I run it.", "action": "ls", "response": "I look. Then I run it.\n```\nls\n```"},
        {"thought": "", "action": "submit", "observation": "One. Two."},
    ],
    "history": [USER],
}
MINI = {
    "trajectory_format": "mini-swe-agent-1.1",
    "messages": [
        USER,
        {"role": "assistant", "content": "I look. Then:\n```bash\nls\n```", "extra": {"actions": [{"command": "ls"}]}},
        {"role": "user", "content": "One. Two."},
        {"role": "assistant", "content": "I am sure. Done.", "extra": {"actions": [{"command": "submit"}]}},
    ],
}


def read_steps(format: str, record: object, segmenter: str = "") -> tuple[list[StepRecord], str]:
    content = io.BytesIO(json.dumps(record).encode())
    (trace,) = catalog.read_traces(content, format=format, segmenter=segmenter)
    assert isinstance(trace, TraceRecord)
    assert trace.provenance is not None
    return trace.steps, trace.provenance.segmenter


def join_messages(steps: list[StepRecord]) -> dict[tuple[int | None, bool], str]:
    joined: dict[tuple[int | None, bool], str] = defaultdict(str)
    for step in steps:
        joined[step.source_position, step.is_rateable] += step.separator + step.options[0].text
    return joined


@given(TEXTS, PARTS, NAMES, st.sampled_from(["reasoning", "action"]))
def test_split_message_loses_nothing(text: str, parts: tuple[PartRecord, ...], segmenter: str, kind: str) -> None:
    whole = OptionRecord("\n".join(part.text for part in parts) if parts else text, parts=parts)
    steps, _ = split_message(StepRecord([whole], kind, source_position=3, agent="a"), segmenter)
    assert join_messages(steps) == {(3, True): whole.text}
    assert {step.agent for step in steps} == {"a"}
    kept = [part for step in steps for part in step.options[0].parts if part.kind == "call"]
    assert kept == [part for part in parts if part.kind == "call"]
    if kind == "action":
        assert "action" in {step.kind for step in steps}


@pytest.mark.parametrize(
    ("format", "record", "kinds", "name"),
    [
        ("chat", CHAT, ["user", *["reasoning"] * 2, "action", "observation", *["reasoning"] * 2], "chat turns 1"),
        ("swe_agent", SWE, ["user", *["reasoning"] * 2, "action", "action", "observation"], "agent turns 1"),
        (
            "mini_swe_agent",
            MINI,
            ["user", "reasoning", "action", "observation", *["reasoning"] * 2, "action"],
            "agent turns 1",
        ),
    ],
)
def test_named_segmenter_splits_messages_of_the_model(
    format: str, record: dict[str, Any], kinds: list[str], name: str
) -> None:
    whole, _ = read_steps(format, record)
    steps, used = read_steps(format, record, "sentences 2")
    assert [step.kind for step in steps] == kinds
    assert used == f"{name}, sentences 2"
    assert join_messages(steps) == join_messages(whole)
    assert read_steps(format, record, segmenters.BEST_FIT) == (whole, name)  # no text is long


def test_best_fit_splits_long_texts_only() -> None:
    long = {"role": "assistant", "content": "\n\n".join(["A line.\nAnother."] * 80), "tool_calls": [CALL]}
    steps, used = read_steps("chat", {"messages": [*CHAT["messages"], long]}, segmenters.BEST_FIT)
    assert used == "chat turns 1, blank lines 2"
    assert [step.source_position for step in steps] == [0, 1, 2, 3, *[4] * 81]


def test_parts_of_a_message_are_numbered() -> None:
    places = [StepPlace(0, False), StepPlace(1, True), StepPlace(1, True), StepPlace(1, False), StepPlace(None, True)]
    expected = [None, MessagePart(2, 1, 2), MessagePart(2, 2, 2), None, None]
    assert list(find_message_parts([*places, StepPlace(None, True)])) == [*expected, None]
