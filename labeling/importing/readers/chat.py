"""Chat messages with tool calls, as OpenAI's interface and tau-bench write them, one message a step.

What the model said or did can be rated; what others said, and what tools gave back, is context. Labels of messages, as
AgentProcessBench has them, are read where they are.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from labeling.importing.readers import strictjson
from labeling.importing.records import (
    JudgmentRecord,
    OptionRecord,
    PartRecord,
    ProblemRecord,
    ProvenanceRecord,
    StepRecord,
    SubmissionRecord,
    TraceRecord,
    TurnRecord,
)

SEGMENTER = "chat turns 1"
ANNOTATORS = "AgentProcessBench annotators"
_KINDS = {"system": "system", "developer": "system", "user": "user", "tool": "observation", "function": "observation"}


class Function(Struct, gc=False):
    name: str = ""
    arguments: str | dict[str, object] | None = ""


class Call(Struct, gc=False):
    function: Function
    id: str | None = ""


class Piece(Struct, gc=False):
    type: str
    text: str = ""
    image_url: dict[str, object] | str = ""


class Message(Struct, gc=False):
    role: str
    content: str | list[Piece] | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = ""
    name: str | None = ""


class Scenario(Struct, gc=False, frozen=True):
    instruction: str = ""


class Info(Struct, gc=False, frozen=True):
    task: Scenario = Scenario()


class Item(Struct, gc=False):
    messages: list[Message] | UnsetType = UNSET
    traj: list[Message] | UnsetType = UNSET
    task_id: int | str = ""
    trial: int | str = ""
    id: int | str = ""
    model: str = ""
    reward: float | None = None
    info: Info = Info()
    step_labels: dict[str, Literal[-1, 0, 1]] | UnsetType = UNSET
    final_label: int | bool | None = None


decoder = msgspec.json.Decoder(Item)


def looks_like(record: object) -> bool:
    messages = record.get("messages", record.get("traj")) if isinstance(record, dict) else None
    return isinstance(messages, list) and bool(messages) and isinstance(messages[0], dict) and "role" in messages[0]


def traces(item: Item) -> Iterator[TraceRecord]:
    messages = item.messages or item.traj or []
    if not messages:
        raise strictjson.Misfit((), "no messages in this record")
    steps = [_step(position, message) for position, message in enumerate(messages)]
    is_right = _is_right(item)
    yield TraceRecord(
        problem=ProblemRecord(item.info.task.instruction or _asked(messages)),
        steps=steps,
        ref=".".join(str(part) for part in (item.id, item.task_id, item.trial) if part != ""),
        is_right=is_right,
        outcome_by="" if is_right is None else "file",
        provenance=ProvenanceRecord(policy=item.model, segmenter=SEGMENTER),
        submissions=[] if item.step_labels is UNSET else [_submission(item.step_labels, steps)],
    )


def _step(position: int, message: Message) -> StepRecord:
    kind = _KINDS.get(message.role) or ("action" if message.tool_calls else "reasoning")
    parts = tuple(_parts(message, is_result=kind == "observation"))
    is_plain = len(parts) == 1 and parts[0].kind == "text"
    option = OptionRecord("\n".join(_shown(part) for part in parts), parts=() if is_plain else parts)
    return StepRecord([option], kind=kind, is_rateable=message.role not in _KINDS, source_position=position)


def _parts(message: Message, *, is_result: bool) -> Iterator[PartRecord]:
    content = message.content
    if isinstance(content, str) and is_result:
        yield PartRecord(
            "result", content, name=(message.name or "")[:200], call_ref=(message.tool_call_id or "")[:200]
        )
    elif isinstance(content, str):
        yield PartRecord("text", content)
    else:
        yield from (_piece(piece) for piece in content or ())
    for call in message.tool_calls or ():
        given = call.function.arguments
        arguments = given if isinstance(given, str) else msgspec.json.encode(given).decode()
        yield PartRecord("call", arguments, name=call.function.name[:200], call_ref=(call.id or "")[:200])


def _piece(piece: Piece) -> PartRecord:
    if piece.type != "image_url":
        return PartRecord("text", piece.text)
    url = piece.image_url if isinstance(piece.image_url, str) else str(piece.image_url.get("url", ""))
    return PartRecord("image", url)


def _shown(part: PartRecord) -> str:
    return f"{part.name}({part.text})" if part.kind == "call" else part.text


def _asked(messages: list[Message]) -> str:
    """What the first person said."""
    first = next((message for message in messages if message.role == "user"), messages[0])
    return "\n".join(_shown(part) for part in _parts(first, is_result=False))


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
