"""Chats with tool calls, as the APIs of OpenAI and Anthropic and as tau-bench write them: one step per message.

A message has parts: texts, tool calls and their results, images. A part that cannot be shown, such as audio, is
refused, not dropped. A long text of the model is split into steps, unless the chat uses tools or has message labels.

Chats are written as AgentProcessBench has them: messages, the label of each message of the model, and that of the
outcome.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from formats import images, messages, native, records, segmenters, strict_json
from formats.examples import RATER_COLUMNS, LabelRule, OutputRow, RowTally, TraceExample, get_taken_rating
from formats.label_sets import LabelingProtocol
from formats.record_reader import RecordReader
from formats.records import (
    OptionRecord,
    OriginalRecord,
    PartRecord,
    ProblemRecord,
    ProvenanceRecord,
    RecordName,
    ShortRecordName,
    StepRecord,
    SubmissionRecord,
    TraceRecord,
)

SEGMENTER = "chat turns 1"
ANNOTATORS = "AgentProcessBench annotators"
FINAL_LABEL = "final_label"  # the question that AgentProcessBench asks on the whole trace

_Path = tuple[str | int, ...]
# The roles of context; the model's own role is "assistant".
_KINDS = {"system": "system", "developer": "system", "user": "user", "tool": "observation", "function": "observation"}
_MAX_NAME = 200  # characters of a tool's name or a call's id
_REASONING = "reasoning"  # the media type of a text that the model did not show to the user
_REF_KEYS = ("id", "total_index", "task_id", "trial")  # together the name of the trace
_LABEL_KEYS = frozenset({"step_labels", FINAL_LABEL, "trace_answers", "labeling_protocol", *RATER_COLUMNS})
_ROLES = {"system": "system", "user": "user", "observation": "tool"}


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
    id: str = ""
    name: str = ""
    input: object = None
    tool_use_id: str = ""
    content: str | list[object] | None = ""
    image_url: object = None  # of OpenAI: an address, or an object with one
    source: object = None  # of an image as Anthropic sends it
    description: str | None = ""  # of an image; only this format has it


class ChatMessage(Struct, gc=False):
    role: str
    content: str | list[MessagePiece] | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None
    function_call: MessageFunction | None = None  # the older form of a single call
    tool_call_id: str | None = ""
    parent_tool_use_id: str | None = ""  # the call that started the subagent of this message
    name: str | None = ""


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
    trace_answers: dict[Annotated[str, Meta(max_length=40)], str | int] | None = None
    # Written by ourselves: who gave the labels, and by which rule.
    labeling_protocol: LabelingProtocol | None = None
    rater: RecordName | None = None
    rater_kind: str | None = None
    rater_name: RecordName | None = None
    label_source: str | None = None


def looks_like(record: object) -> bool:
    turns = record.get("messages", record.get("traj")) if isinstance(record, dict) else None
    return _is_message(turns[0] if isinstance(turns, list) and turns else record)


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and "role" in value and bool({"content", "tool_calls"} & value.keys())


def _is_message_text(raw: bytes) -> bool:
    """Tell whether an array of such values is one chat."""
    try:
        return _is_message(msgspec.json.decode(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def parse_traces(
    chat: ChatItem | list[ChatMessage], segmenter: str = "", extras: Mapping[str, object] | None = None
) -> Iterator[TraceRecord]:
    """Make the trace of a chat. `extras` are members that the format does not define: they become metadata."""
    item = chat if isinstance(chat, ChatItem) else ChatItem(messages=chat)
    path = () if isinstance(chat, list) else ("messages",) if item.messages else ("traj",)
    turns = item.messages or item.traj or []
    if not turns:
        raise strict_json.RecordMisfit((), "the record has no messages")
    steps = [_make_step(position, message, (*path, position)) for position, message in enumerate(turns)]
    _name_subagents(steps, turns)
    used = ""
    if item.step_labels is None:  # labels are of whole messages
        steps, used = _split_long_texts(steps, segmenter)
    yield TraceRecord(
        problem=_make_problem(item, turns),
        steps=steps,
        ref=".".join(map(str, _list_refs(item).values())),
        is_right=_is_right(item),
        provenance=ProvenanceRecord(policy=item.model or "", segmenter=messages.name_segmenters(SEGMENTER, used)),
        metadata=_make_metadata(item, extras or {}),
        submissions=[] if item.step_labels is None else [_make_submission(item, item.step_labels, steps)],
    )


def _list_refs(item: ChatItem) -> dict[str, object]:
    refs = {key: getattr(item, key) for key in _REF_KEYS}
    return {key: value for key, value in refs.items() if value not in ("", None)}


def _make_metadata(item: ChatItem, extras: Mapping[str, object]) -> dict[str, object]:
    """Keep what the other fields of a trace cannot reproduce. Members that do not fit are left out, long ones first."""
    refs = _list_refs(item)
    members: dict[str, object] = {} if set(refs) <= {"id"} and isinstance(item.id, str | None) else {**refs}
    if isinstance(item.final_label, bool) or item.final_label not in (None, 1, -1):
        members["final_label"] = item.final_label
    members |= extras
    kept, n_bytes = set(), 0
    for key in sorted(members, key=lambda key: len(msgspec.json.encode(members[key]))):
        n_bytes += len(msgspec.json.encode({key: members[key]}))
        kept |= {key} if n_bytes <= native.MAX_METADATA else set()
    return {key: value for key, value in members.items() if key in kept}


def _name_subagents(steps: list[StepRecord], turns: list[ChatMessage]) -> None:
    """Give the messages of subagents the path of the calls that started them."""
    started: dict[str, str] = {}
    for step, message in zip(steps, turns, strict=True):
        step.agent = started.get(message.parent_tool_use_id or "", "")
        for part in step.options[0].parts:
            if part.kind == "call" and part.call_ref:
                started[part.call_ref] = "/".join(filter(None, (step.agent, _subagent_name(part))))[:_MAX_NAME]


def _subagent_name(call: PartRecord) -> str:
    try:
        arguments = msgspec.json.decode(call.text)
    except msgspec.DecodeError:
        arguments = None
    named = arguments.get("subagent_type") if isinstance(arguments, dict) else None
    return (named if isinstance(named, str) and named else call.name).replace("/", " ")


def _make_problem(item: ChatItem, turns: list[ChatMessage]) -> ProblemRecord:
    """Make the problem of the record's question, or of the first message of the user. It has those images of the
    message whose placeholders its text has."""
    first = next((message for message in turns if message.role == "user"), turns[0])
    parts = list(_split_parts(first, ()))
    text = item.question or (item.info or ChatInfo()).task.instruction or "\n".join(map(_show_part, parts))
    shown = images.find_images(text, images.list_images(parts))
    return ProblemRecord(text, domain=(item.data_source or "")[:100], images=tuple(shown))


def _is_right(item: ChatItem) -> bool | None:
    if item.reward is not None:
        return item.reward >= 1
    return None if item.final_label is None else item.final_label == 1


def _make_submission(item: ChatItem, labels: dict[str, Literal[-1, 0, 1]], steps: list[StepRecord]) -> SubmissionRecord:
    turns = []
    for index, rating in sorted(labels.items(), key=lambda label: label[0].zfill(9)):
        if not index.isascii() or not index.isdigit() or int(index) >= len(steps):
            raise strict_json.RecordMisfit(
                ("step_labels", index), f'step label "{index}" is not a message: the {len(steps)} messages count from 0'
            )
        turns.append(records.make_turn(int(index), steps[int(index)].options[0].text, rating))
    machine = item.rater_name or "" if item.rater_kind == "machine" else ""
    labeler = None if machine else item.rater or ANNOTATORS
    protocol = item.labeling_protocol or "propagated"
    answers = {question: str(answer) for question, answer in (item.trace_answers or {}).items()}
    if item.final_label is not None and not isinstance(item.final_label, bool):
        answers = {FINAL_LABEL: str(item.final_label), **answers}
    return SubmissionRecord(
        turns, labeler=labeler, machine=machine, finish_reason="solution", protocol=protocol, answers=answers
    )


def keep_item(members: dict[str, Any], trace: TraceRecord) -> OriginalRecord | None:
    """Keep a chat that its steps do not reproduce, unless its messages were split or have images."""
    is_whole = [step.source_position for step in trace.steps] == [*range(len(trace.steps))]
    parts = [part for step in trace.steps for option in step.options for part in option.parts]
    has_images = bool(trace.problem.images) or any(part.kind == "image" for part in parts)
    written = _write_chat(trace)
    is_reproduced = all(key in written and written[key] == members[key] for key in members if key not in _LABEL_KEYS)
    if not is_whole or has_images or is_reproduced:
        return None
    return records.keep_original("chat", members, labels=_LABEL_KEYS)


read = RecordReader(
    ChatItem | list[ChatMessage],
    parse_traces,
    looks_like=looks_like,
    is_part=_is_message_text,
    takes_segmenter=True,
    keeps_extras=True,
    keep=keep_item,
)


# --- splitting messages --------------------------------------------------------------------------------------------


def _split_long_texts(steps: list[StepRecord], chosen: str) -> tuple[list[StepRecord], str]:
    """Split the texts of the model, and return the names of the segmenters.

    Without a chosen segmenter, chats with tools stay as they are, and turns of a dialogue unless they are long.
    """
    if chosen:
        return messages.split_messages(steps, chosen)
    uses_tools = any(step.kind in ("action", "observation") for step in steps)
    is_dialogue = sum(step.is_rateable for step in steps) > 1
    split: list[StepRecord] = []
    names: set[str] = set()
    for step in steps:
        text = step.options[0].text
        is_solution = not uses_tools and (not is_dialogue or len(text) > messages.LONG_TEXT)
        if not step.is_rateable or step.kind != "reasoning" or not is_solution:
            split.append(step)
            continue
        pieces, name = messages.split_message(step, segmenters.choose_segmenter(text))
        split += pieces
        names.update([name] if name else [])
    return split, ", ".join(sorted(names))


# --- one message ---------------------------------------------------------------------------------------------------


def _make_step(position: int, message: ChatMessage, path: _Path) -> StepRecord:
    """Make a step of a message. Steps of the model can be rated; those of users and tools are context."""
    if message.role not in _KINDS and message.role != "assistant":
        roles = ", ".join(["assistant", *_KINDS])
        raise strict_json.RecordMisfit((*path, "role"), f'unknown role "{message.role[:40]}": the roles are {roles}')
    parts = list(_split_parts(message, path))
    kind = _choose_step_kind(message, parts)
    is_plain = len(parts) == 1 and parts[0].kind == "text"
    option = OptionRecord("\n".join(map(_show_part, parts)), parts=() if is_plain else tuple(parts))
    return StepRecord([option], kind=kind, is_rateable=message.role not in _KINDS, source_position=position)


def _split_parts(message: ChatMessage, path: _Path) -> Iterator[PartRecord]:
    if message.reasoning_content:
        yield PartRecord("text", message.reasoning_content, media_type=_REASONING)
    if _KINDS.get(message.role) == "observation":
        yield from _make_results(_split_content(message.content, path), message.name, message.tool_call_id)
    elif isinstance(message.content, str):
        yield from _make_text(message.content)
    else:
        yield from _split_content(message.content, path)
    for call in message.tool_calls or ():
        yield _make_call(call.function.name, call.function.arguments, call.id)
    if message.function_call:
        yield _make_call(message.function_call.name, message.function_call.arguments, "")


def _choose_step_kind(message: ChatMessage, parts: list[PartRecord]) -> str:
    kinds = {part.kind for part in parts} - {"image"}
    if message.role in _KINDS:
        # Anthropic sends the results of tools in messages of the user.
        return "observation" if kinds == {"result"} else _KINDS[message.role]
    return "action" if "call" in kinds else "reasoning"


def _split_piece(piece: MessagePiece, path: _Path) -> Iterator[PartRecord]:
    match piece.type:
        case "text" | "input_text" | "output_text":
            yield from _make_text(piece.text)
        case "thinking" | "refusal":
            yield from _make_text(piece.thinking or piece.refusal)
        case "tool_use":
            yield _make_call(piece.name, piece.input, piece.id)
        case "tool_result":
            yield from _make_results(_split_result(piece.content, (*path, "content")), "", piece.tool_use_id)
        case "image_url" | "input_image" | "image":
            yield _make_image(piece, path)
        case _:
            raise strict_json.RecordMisfit((*path, "type"), f'content of type "{piece.type[:40]}" cannot be shown')


def _make_text(text: str | None) -> Iterator[PartRecord]:
    """Yield a text part, or none: models that call a tool often send an empty text with the call."""
    if text:
        yield PartRecord("text", text)


def _split_content(content: str | list[MessagePiece] | None, path: _Path) -> Iterator[PartRecord]:
    if isinstance(content, str):
        yield from _make_text(content)
        return
    for number, piece in enumerate(content or ()):
        yield from _split_piece(piece, (*path, "content", number))


def _split_result(content: str | list[object] | None, path: _Path) -> Iterator[PartRecord]:
    """Yield the pieces of a tool's result as Anthropic sends it. Those that are neither text nor image are JSON."""
    for number, piece in enumerate(content if isinstance(content, list) else [content] if content else []):
        if isinstance(piece, dict) and piece.get("type") == "image":
            yield _make_image(MessagePiece("image", source=piece.get("source")), (*path, number))
        else:
            yield from _make_text(records.join_content([piece]))


def _make_image(piece: MessagePiece, path: _Path) -> PartRecord:
    address, path = piece.image_url, (*path, "image_url")
    if piece.type == "image":
        address, path = piece.source, (*path[:-1], "source")
    if isinstance(address, dict):
        key = "url" if "url" in address else "data"
        path, value = (*path, key), address.get(key)
        address = f"data:{address.get('media_type')};base64,{value}" if key == "data" and value else value
    if not isinstance(address, str):
        raise strict_json.RecordMisfit(path[:-1], "the image has no data")
    return images.make_part(images.parse_reference(address, path, piece.description))


def _make_call(name: str, arguments: object, ref: str | None) -> PartRecord:
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return PartRecord("call", text, name=name[:_MAX_NAME], call_ref=(ref or "")[:_MAX_NAME])


def _make_results(parts: Iterable[PartRecord], name: str | None, ref: str | None) -> Iterator[PartRecord]:
    """Yield the texts as one result of a tool, then its images."""
    pieces = list(parts)
    text = "\n".join(part.text for part in pieces if part.kind != "image")
    yield PartRecord("result", text, name=(name or "")[:_MAX_NAME], call_ref=(ref or "")[:_MAX_NAME])
    yield from (part for part in pieces if part.kind == "image")


def _show_part(part: PartRecord) -> str:
    return f"{part.name}({part.text})" if part.kind == "call" else part.text


# --- writing ---------------------------------------------------------------------------------------------------------


def write(example: TraceExample, rule: LabelRule, tally: RowTally) -> Iterator[OutputRow]:
    """Yield a chat for each submission, or for the consensus. Members come back as the file had them."""
    for facts, record in example.labeled_records(rule, tally):
        original = records.load_original(record, "chat")
        n_before = 0 if original else _count_opening(record)
        submission = record.submissions[0]
        ratings = {str(turn.position + n_before): get_taken_rating(turn) for turn in submission.turns}
        kept = dict(record.metadata)
        answers = {} if example.is_consensus else dict(submission.answers)
        labels = {
            "step_labels": {index: rating for index, rating in ratings.items() if rating is not None},
            "final_label": _choose_final_label(answers, kept, is_right=record.is_right),
            **({"trace_answers": answers} if answers else {}),
            "labeling_protocol": submission.protocol or None,
            **example.describe_rater(facts),
        }
        yield {**(original or _write_chat(record)), **labels}


def _count_opening(record: TraceRecord) -> int:
    """Return 1 if the trace has no context: it becomes the answer to its problem."""
    return int(all(step.is_rateable for step in record.steps))


def _write_chat(record: TraceRecord) -> OutputRow:
    """Write a chat without labels. Members that the import kept as metadata come back."""
    kept = {key: value for key, value in record.metadata.items() if key != FINAL_LABEL}
    refs = {key: kept.pop(key) for key in _REF_KEYS if key in kept} or ({"id": record.ref} if record.ref else {})
    opening = [_write_opening(record.problem)] * _count_opening(record)
    return {
        **refs,
        "question": record.problem.text,
        "data_source": record.problem.domain,
        "model": record.provenance.policy if record.provenance else "",
        "messages": opening + [_write_message(step) for step in record.steps if step.options],
        **kept,
    }


def _choose_final_label(answers: dict[str, str], kept: dict[str, object], *, is_right: bool | None) -> object:
    """Take the rater's verdict out of the answers. Without one, the label is that of the file, or the outcome."""
    of_file = kept.pop(FINAL_LABEL, None)
    if answers.get(FINAL_LABEL, "").removeprefix("-").isdecimal():
        return int(answers.pop(FINAL_LABEL))
    return of_file if of_file is not None or is_right is None else 1 if is_right else -1


def _write_opening(problem: ProblemRecord) -> OutputRow:
    if not problem.images:
        return {"role": "user", "content": problem.text}
    parts = images.make_parts(problem.text, problem.images)
    return {"role": "user", "content": list(map(_write_piece, parts))}


def _write_piece(part: PartRecord) -> OutputRow:
    """Write a text, or an image as a file beside the records."""
    if part.kind != "image":
        return {"type": "text", "text": part.text}
    (image,) = images.list_images([part])
    described = {"description": image.description} if image.description else {}
    return {"type": "image_url", "image_url": {"url": images.write_path(image)}, **described}


def _write_message(step: StepRecord) -> OutputRow:
    """Write a step as a message of the OpenAI API."""
    role, option = "assistant" if step.is_rateable else _ROLES.get(step.kind, "assistant"), step.options[0]
    if not option.parts:
        return {"role": role, "content": option.text}
    if role == "tool":
        return _write_results(option.parts)
    shown = [part for part in option.parts if part.kind in ("text", "image") and part.media_type != _REASONING]
    thought = [part.text for part in option.parts if part.media_type == _REASONING]
    calls = [
        {"id": part.call_ref, "type": "function", "function": {"name": part.name, "arguments": part.text}}
        for part in option.parts
        if part.kind == "call"
    ]
    has_pieces = len(shown) > 1 or any(part.kind == "image" for part in shown)
    content = list(map(_write_piece, shown)) if has_pieces else shown[0].text if shown else None
    message: dict[str, Any] = {"role": role, "content": content}
    return (
        message
        | ({"reasoning_content": "\n".join(thought)} if thought else {})
        | ({"tool_calls": calls} if calls else {})
    )


def _write_results(parts: tuple[PartRecord, ...]) -> OutputRow:
    names = {"tool_call_id": parts[0].call_ref, "name": parts[0].name}
    content: object = "\n".join(part.text for part in parts if part.kind != "image")
    if shown := [part for part in parts if part.kind == "image"]:
        content = [_write_piece(part) for part in (PartRecord("text", str(content)), *shown) if part.text]
    return {"role": "tool", **{key: name for key, name in names.items() if name}, "content": content}
