"""Messages of a chat as the interfaces of OpenAI and Anthropic write them, and the parts that each has: texts, images,
calls of tools and their results. A piece of a kind that cannot be shown is refused, not dropped."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from formats import json_values, strict_json
from formats.json_values import RawValue
from formats.labeled_steps import RecordName, ShortRecordName
from formats.records import (
    BadLine,
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

_Path = tuple[str | int, ...]
_KINDS = {"system": "system", "developer": "system", "user": "user", "tool": "observation", "function": "observation"}
_NAMES = 200  # characters of a tool's name, or of what joins a result to its call


class MessageFunction(Struct, gc=False):
    name: str = ""
    arguments: str | dict[str, object] | None = ""


class ToolCall(Struct, gc=False):
    function: MessageFunction
    id: str | None = ""


class MessagePiece(Struct, gc=False):
    type: str
    text: str | None = ""
    thinking: str | None = ""
    refusal: str | None = ""
    image_url: dict[str, object] | str = ""
    id: str = ""
    name: str = ""
    input: object = None
    tool_use_id: str = ""
    content: str | list[object] | None = ""


class ChatMessage(Struct, gc=False):
    role: str
    content: str | list[MessagePiece] | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None
    function_call: MessageFunction | None = None  # as calls were written before there were several
    tool_call_id: str | None = ""
    name: str | None = ""


def make_message_step(position: int, message: ChatMessage, path: _Path) -> StepRecord:
    """The message as a step: what the model said or did can be rated."""
    found = list(split_message_parts(message, path))
    kind = _choose_step_kind(message, found)
    is_plain = len(found) == 1 and found[0].kind == "text"
    option = OptionRecord("\n".join(map(_show_part, found)), parts=() if is_plain else tuple(found))
    return StepRecord([option], kind=kind, is_rateable=message.role not in _KINDS, source_position=position)


def join_message_text(message: ChatMessage, path: _Path) -> str:
    return "\n".join(map(_show_part, split_message_parts(message, path)))


def split_message_parts(message: ChatMessage, path: _Path) -> Iterator[PartRecord]:
    if message.reasoning_content:
        yield PartRecord("text", message.reasoning_content)
    if _KINDS.get(message.role) == "observation":
        yield _result(_text(message.content, path), message.name, message.tool_call_id)
    elif isinstance(message.content, str):
        yield from _texts(message.content)
    else:
        for number, piece in enumerate(message.content or ()):
            yield from _split_piece(piece, (*path, "content", number))
    for call in message.tool_calls or ():
        yield _call(call.function.name, call.function.arguments, call.id)
    if message.function_call:
        yield _call(message.function_call.name, message.function_call.arguments, "")


def _choose_step_kind(message: ChatMessage, found: list[PartRecord]) -> str:
    kinds = {part.kind for part in found}
    if message.role in _KINDS:
        # Anthropic's results of tools come in messages of the user.
        return "observation" if kinds == {"result"} else _KINDS[message.role]
    return "action" if "call" in kinds else "reasoning"


def _split_piece(piece: MessagePiece, path: _Path) -> Iterator[PartRecord]:
    match piece.type:
        case "text" | "input_text" | "output_text":
            yield from _texts(piece.text)
        case "thinking":
            yield from _texts(piece.thinking)
        case "refusal":
            yield from _texts(piece.refusal)
        case "image_url":
            url = piece.image_url if isinstance(piece.image_url, str) else str(piece.image_url.get("url", ""))
            yield PartRecord("image", url)
        case "tool_use":
            yield _call(piece.name, piece.input, piece.id)
        case "tool_result":
            yield _result(_plain(piece.content), "", piece.tool_use_id)
        case _:
            raise strict_json.RecordMisfit((*path, "type"), f'a piece of the type "{piece.type[:40]}" cannot be shown')


def _texts(text: str | None) -> Iterator[PartRecord]:
    """Models that call a tool often say the empty text beside it."""
    if text:
        yield PartRecord("text", text)


def _text(content: str | list[MessagePiece] | None, path: _Path) -> str:
    if isinstance(content, str) or content is None:
        return content or ""
    pieces = (_split_piece(piece, (*path, "content", number)) for number, piece in enumerate(content))
    return "\n".join(part.text for found in pieces for part in found)


def _plain(content: object) -> str:
    """What a tool gave back: a text, or pieces of which those of text are shown as such."""
    if isinstance(content, str) or content is None:
        return content or ""
    pieces = content if isinstance(content, list) else [content]
    return "\n".join(
        piece["text"]
        if isinstance(piece, dict) and isinstance(piece.get("text"), str)
        else msgspec.json.encode(piece).decode()
        for piece in pieces
    )


def _call(name: str, arguments: object, ref: str | None) -> PartRecord:
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return PartRecord("call", text, name=name[:_NAMES], call_ref=(ref or "")[:_NAMES])


def _result(text: str, name: str | None, ref: str | None) -> PartRecord:
    return PartRecord("result", text, name=(name or "")[:_NAMES], call_ref=(ref or "")[:_NAMES])


def _show_part(part: PartRecord) -> str:
    return f"{part.name}({part.text})" if part.kind == "call" else part.text


# Chat messages with tool calls, as OpenAI's interface and tau-bench write them, one message a step.


SEGMENTER = "chat turns 1"
ANNOTATORS = "AgentProcessBench annotators"


class ChatScenario(Struct, gc=False, frozen=True):
    instruction: str = ""


class ChatInfo(Struct, gc=False, frozen=True):
    task: ChatScenario = ChatScenario()


class ChatItem(Struct, gc=False):
    messages: list[ChatMessage] | UnsetType = UNSET
    traj: list[ChatMessage] | UnsetType = UNSET
    task_id: int | ShortRecordName | None = ""
    trial: int | ShortRecordName | None = ""
    id: int | ShortRecordName | None = ""
    total_index: int | None = None
    question: str | None = ""
    data_source: str | None = ""
    model: RecordName | None = ""
    reward: float | None = None
    info: ChatInfo | None = ChatInfo()
    step_labels: dict[str, Literal[-1, 0, 1]] | None = None
    final_label: int | bool | None = None


decoder = msgspec.json.Decoder(ChatItem | list[ChatMessage])


def looks_like(record: object) -> bool:
    given = record.get("messages", record.get("traj")) if isinstance(record, dict) else None
    return _is_message(given[0] if isinstance(given, list) and given else record)


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and "role" in value and bool({"content", "tool_calls"} & value.keys())


def regroup_values(given: Iterable[RawValue | BadLine]) -> Iterator[RawValue | BadLine]:
    """The values of a file, of which messages that stand in one array make one value."""
    values = iter(given)
    first = next(values, None)
    if first is None:
        return
    is_array = isinstance(first, RawValue) and first.array and _is_message_text(first.raw)
    rest = chain([first], values)
    yield from json_values.join_array_values(rest) if is_array else rest


def _is_message_text(raw: bytes) -> bool:
    try:
        return _is_message(msgspec.json.decode(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def parse_traces(given: ChatItem | list[ChatMessage]) -> Iterator[TraceRecord]:
    item = given if isinstance(given, ChatItem) else ChatItem(messages=given)
    path = () if isinstance(given, list) else ("messages",) if item.messages else ("traj",)
    there = item.messages or item.traj or []
    if not there:
        raise strict_json.RecordMisfit((), "no messages in this record")
    steps = [make_message_step(position, message, (*path, position)) for position, message in enumerate(there)]
    is_right = _is_right(item)
    yield TraceRecord(
        problem=ProblemRecord(
            item.question or (item.info or ChatInfo()).task.instruction or _first_user_text(there),
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


def _first_user_text(there: list[ChatMessage]) -> str:
    """What the first person said."""
    first = next((message for message in there if message.role == "user"), there[0])
    return join_message_text(first, ())


def _is_right(item: ChatItem) -> bool | None:
    if item.reward is not None:
        return item.reward >= 1
    return None if item.final_label is None else item.final_label == 1


def _submission(labels: dict[str, Literal[-1, 0, 1]], steps: list[StepRecord]) -> SubmissionRecord:
    turns = []
    for index, rating in sorted(labels.items(), key=lambda label: label[0].zfill(9)):
        if not index.isascii() or not index.isdigit() or int(index) >= len(steps):
            raise strict_json.RecordMisfit(
                ("step_labels", index), f'step label "{index}" names none of the {len(steps)} messages'
            )
        text = steps[int(index)].options[0].text
        chosen = None if rating == -1 else 0
        turns.append(TurnRecord(int(index), shown=[JudgmentRecord(text, rating)], chosen=chosen))
    return SubmissionRecord(turns, labeler=ANNOTATORS, finish_reason="solution")
