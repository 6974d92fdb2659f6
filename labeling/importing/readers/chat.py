"""Chat messages with tool calls, as OpenAI's interface and tau-bench write them, one message a step.

What the model said or did can be rated; what others said, and what tools gave back, is context. Labels of messages, as
AgentProcessBench has them, are read where they are. A record may be nothing but its messages: then each array is one.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from labeling.importing.readers import arrays, messages, strictjson
from labeling.importing.readers.labelled import Name, ShortName
from labeling.importing.readers.messages import Message
from labeling.importing.readers.objects import Found
from labeling.importing.records import (
    BadLine,
    JudgmentRecord,
    ProblemRecord,
    ProvenanceRecord,
    StepRecord,
    SubmissionRecord,
    TraceRecord,
    TurnRecord,
)

SEGMENTER = "chat turns 1"
ANNOTATORS = "AgentProcessBench annotators"


class Scenario(Struct, gc=False, frozen=True):
    instruction: str = ""


class Info(Struct, gc=False, frozen=True):
    task: Scenario = Scenario()


class Item(Struct, gc=False):
    messages: list[Message] | UnsetType = UNSET
    traj: list[Message] | UnsetType = UNSET
    task_id: int | ShortName | None = ""
    trial: int | ShortName | None = ""
    id: int | ShortName | None = ""
    total_index: int | None = None
    question: str | None = ""
    data_source: str | None = ""
    model: Name | None = ""
    reward: float | None = None
    info: Info | None = Info()
    step_labels: dict[str, Literal[-1, 0, 1]] | None = None
    final_label: int | bool | None = None


decoder = msgspec.json.Decoder(Item | list[Message])


def looks_like(record: object) -> bool:
    given = record.get("messages", record.get("traj")) if isinstance(record, dict) else None
    return _is_message(given[0] if isinstance(given, list) and given else record)


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and "role" in value and bool({"content", "tool_calls"} & value.keys())


def joined(given: Iterable[Found | BadLine]) -> Iterator[Found | BadLine]:
    """The values of a file, of which messages that stand in one array make one value."""
    values = iter(given)
    first = next(values, None)
    if first is None:
        return
    is_array = isinstance(first, Found) and first.array and _is_message_text(first.raw)
    rest = chain([first], values)
    yield from arrays.joined(rest) if is_array else rest


def _is_message_text(raw: bytes) -> bool:
    try:
        return _is_message(msgspec.json.decode(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def traces(given: Item | list[Message]) -> Iterator[TraceRecord]:
    item = given if isinstance(given, Item) else Item(messages=given)
    path = () if isinstance(given, list) else ("messages",) if item.messages else ("traj",)
    there = item.messages or item.traj or []
    if not there:
        raise strictjson.Misfit((), "no messages in this record")
    steps = [messages.step(position, message, (*path, position)) for position, message in enumerate(there)]
    is_right = _is_right(item)
    yield TraceRecord(
        problem=ProblemRecord(
            item.question or (item.info or Info()).task.instruction or _asked(there),
            domain=(item.data_source or "")[:100],
        ),
        steps=steps,
        ref=".".join(
            str(part) for part in (item.id, item.total_index, item.task_id, item.trial) if part not in ("", None)
        ),
        is_right=is_right,
        outcome_by="" if is_right is None else "file",
        provenance=ProvenanceRecord(policy=item.model or "", segmenter=SEGMENTER),
        submissions=[] if item.step_labels is None else [_submission(item.step_labels, steps)],
    )


def _asked(there: list[Message]) -> str:
    """What the first person said."""
    first = next((message for message in there if message.role == "user"), there[0])
    return messages.said(first, ())


def _is_right(item: Item) -> bool | None:
    if item.reward is not None:
        return item.reward >= 1
    return None if item.final_label is None else item.final_label == 1


def _submission(labels: dict[str, Literal[-1, 0, 1]], steps: list[StepRecord]) -> SubmissionRecord:
    turns = []
    for index, rating in sorted(labels.items(), key=lambda label: label[0].zfill(9)):
        if not index.isascii() or not index.isdigit() or int(index) >= len(steps):
            raise strictjson.Misfit(
                ("step_labels", index), f'step label "{index}" names none of the {len(steps)} messages'
            )
        text = steps[int(index)].options[0].text
        chosen = None if rating == -1 else 0
        turns.append(TurnRecord(int(index), shown=[JudgmentRecord(text, rating)], chosen=chosen))
    return SubmissionRecord(turns, labeler=ANNOTATORS, finish_reason="solution")
