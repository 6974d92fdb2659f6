"""Messages of a chat as the interfaces of OpenAI and Anthropic write them, and the parts that each has: texts, images,
calls of tools and their results. A piece of a kind that cannot be shown is refused, not dropped."""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from labeling.importing.readers import strictjson
from labeling.importing.records import OptionRecord, PartRecord, StepRecord

_Path = tuple[str | int, ...]
_KINDS = {"system": "system", "developer": "system", "user": "user", "tool": "observation", "function": "observation"}
_NAMES = 200  # characters of a tool's name, or of what joins a result to its call


class Function(Struct, gc=False):
    name: str = ""
    arguments: str | dict[str, object] | None = ""


class Call(Struct, gc=False):
    function: Function
    id: str | None = ""


class Piece(Struct, gc=False):
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


class Message(Struct, gc=False):
    role: str
    content: str | list[Piece] | None = None
    reasoning_content: str | None = None
    tool_calls: list[Call] | None = None
    function_call: Function | None = None  # as calls were written before there were several
    tool_call_id: str | None = ""
    name: str | None = ""


def step(position: int, message: Message, path: _Path) -> StepRecord:
    """The message as a step: what the model said or did can be rated."""
    found = list(parts(message, path))
    kind = _kind(message, found)
    is_plain = len(found) == 1 and found[0].kind == "text"
    option = OptionRecord("\n".join(map(_shown, found)), parts=() if is_plain else tuple(found))
    return StepRecord([option], kind=kind, is_rateable=message.role not in _KINDS, source_position=position)


def said(message: Message, path: _Path) -> str:
    return "\n".join(map(_shown, parts(message, path)))


def parts(message: Message, path: _Path) -> Iterator[PartRecord]:
    if message.reasoning_content:
        yield PartRecord("text", message.reasoning_content)
    if _KINDS.get(message.role) == "observation":
        yield _result(_text(message.content, path), message.name, message.tool_call_id)
    elif isinstance(message.content, str):
        yield from _texts(message.content)
    else:
        for number, piece in enumerate(message.content or ()):
            yield from _of_piece(piece, (*path, "content", number))
    for call in message.tool_calls or ():
        yield _call(call.function.name, call.function.arguments, call.id)
    if message.function_call:
        yield _call(message.function_call.name, message.function_call.arguments, "")


def _kind(message: Message, found: list[PartRecord]) -> str:
    kinds = {part.kind for part in found}
    if message.role in _KINDS:
        # Anthropic's results of tools come in messages of the user.
        return "observation" if kinds == {"result"} else _KINDS[message.role]
    return "action" if "call" in kinds else "reasoning"


def _of_piece(piece: Piece, path: _Path) -> Iterator[PartRecord]:
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
            raise strictjson.Misfit((*path, "type"), f'a piece of the type "{piece.type[:40]}" cannot be shown')


def _texts(text: str | None) -> Iterator[PartRecord]:
    """Models that call a tool often say the empty text beside it."""
    if text:
        yield PartRecord("text", text)


def _text(content: str | list[Piece] | None, path: _Path) -> str:
    if isinstance(content, str) or content is None:
        return content or ""
    pieces = (_of_piece(piece, (*path, "content", number)) for number, piece in enumerate(content))
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


def _shown(part: PartRecord) -> str:
    return f"{part.name}({part.text})" if part.kind == "call" else part.text
