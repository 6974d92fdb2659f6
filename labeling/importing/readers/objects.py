"""Finds the JSON values of a file one by one, in bounded memory: lines of JSON, arrays of records, or one record.

What the records mean is told by the reader of a format, which is given each value decoded.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import BinaryIO, NamedTuple, TypeVar

import msgspec

from labeling.importing.readers import lines, strictjson
from labeling.importing.records import BadLine, TraceRecord

_T = TypeVar("_T")
_PIECE = 1 << 16
_MARKS = re.compile(rb'["\[\]{},]')
_STRING_ENDS = re.compile(rb'["\\]')
_SPACE = b" \t\r\n"


class Found(NamedTuple):
    """The bytes of one value, and where they begin in the file."""

    raw: bytes
    line: int
    column: int = 1
    array: int = 0  # in which array of the file it stands, counted from 1; 0: in none
    cells: tuple[tuple[int, int], ...] = ()  # of a row: where each cell begins in the text, and the cell's number

    def bad(self, refused: strictjson.Refused) -> BadLine:
        """The place inside the value as a place in the file."""
        if self.cells:
            before_it = [number for begin, number in self.cells if begin < refused.column]
            return BadLine(self.line, max(before_it, default=1), refused.reason)
        before = self.raw.decode(errors="replace")[: refused.column - 1]
        below = before.count("\n")
        column = refused.column - before.rfind("\n") - 1 if below else self.column + refused.column - 1
        return BadLine(self.line + below, column, refused.reason)


def read(
    stream: BinaryIO, decoder: "msgspec.json.Decoder[_T]", traces: Callable[[_T], Iterable[TraceRecord]]
) -> Iterator[TraceRecord | BadLine]:
    """The traces of every value in the file."""
    return read_values(values(stream), decoder, traces)


def read_values(
    given: "Iterable[Found | BadLine]",
    decoder: "msgspec.json.Decoder[_T]",
    traces: Callable[[_T], Iterable[TraceRecord]],
) -> Iterator[TraceRecord | BadLine]:
    """The traces of every value. A value that is refused gives no trace at all."""
    for found in given:
        if isinstance(found, BadLine):
            yield found
            continue
        try:
            value = strictjson.decode(found.raw, decoder)
            strictjson.check(found.raw)
            made = list(traces(value))
        except strictjson.Refused as refused:
            yield found.bad(refused)
        except strictjson.Misfit as misfit:
            yield found.bad(misfit.in_text(found.raw))
        else:
            yield from _numbered(made, found)


def values(stream: BinaryIO, *, limit: int = lines.LINE_LIMIT) -> Iterator[Found | BadLine]:
    """Each value of the file. Which of the three kinds of file it is shows at its beginning."""
    number, head = lines.head(stream)
    if head.lstrip().startswith(b"["):
        yield from _items(stream, number, head, limit)
        return
    items = lines.read(stream, limit=limit, begun=(number, head))
    first = next(items, None)
    if first and not isinstance(first, BadLine) and not _is_whole(first[1]):
        yield _one(stream, *first, limit)
        return
    for item in chain([first] if first else [], items):
        yield item if isinstance(item, BadLine) else Found(item[1], item[0])


def _numbered(made: list[TraceRecord], found: Found) -> Iterator[TraceRecord]:
    digest = hashlib.sha256(found.raw).hexdigest()
    for number, record in enumerate(made):
        record.line = found.line
        record.digest = digest if number == 0 else hashlib.sha256(f"{digest}:{number}".encode()).hexdigest()
        yield record


def _is_whole(line: bytes) -> bool:
    """Whether the first line is a value by itself. One that is broken in the middle counts: the reader says where."""
    return line.rstrip().endswith(b"}") or not line.strip().endswith((b"{", b",", b"["))


def _one(stream: BinaryIO, number: int, line: bytes, limit: int) -> Found | BadLine:
    rest = stream.read(limit + 1)
    if len(rest) > limit:
        return BadLine(number, 1, f"the record is longer than {limit:,} bytes")
    return Found((line + b"\n" + rest).rstrip(), number)


class _Cursor:
    """Pieces of the stream joined as they are needed, and how many lines were left behind."""

    def __init__(self, stream: BinaryIO, line: int, text: bytes) -> None:
        self.stream = stream
        self.text = text
        self.at = 0
        self.line = line
        self.column = 1

    def more(self) -> bool:
        piece = self.stream.read(_PIECE)
        self.text += piece
        return bool(piece)

    def drop(self, end: int) -> bytes:
        """Cut off what lies before `end`, counting its lines."""
        gone, self.text = self.text[:end], self.text[end:]
        below = gone.count(b"\n")
        self.line += below
        rest = len(gone[gone.rfind(b"\n") + 1 :].decode(errors="replace"))
        self.column = rest + 1 if below else self.column + rest
        self.at = 0
        return gone

    def skip(self, ignored: bytes) -> bytes:
        """Go past what is ignored; what is there then."""
        while True:
            stripped = self.text.lstrip(ignored)
            self.drop(len(self.text) - len(stripped))
            if stripped or not self.more():
                return stripped


def _items(stream: BinaryIO, number: int, line: bytes, limit: int) -> Iterator[Found | BadLine]:
    """The items of one array after the other, each as soon as it is whole."""
    cursor = _Cursor(stream, number, line)
    array = 0
    while cursor.skip(_SPACE).startswith(b"["):
        array += 1
        cursor.drop(1)
        for item in _items_of_one(cursor, limit):
            yield item._replace(array=array) if isinstance(item, Found) else item
            if isinstance(item, BadLine):
                return
    if cursor.text:
        yield BadLine(cursor.line, cursor.column, "more text after the end of the array")


def _items_of_one(cursor: _Cursor, limit: int) -> Iterator[Found | BadLine]:
    while True:
        cursor.skip(_SPACE)
        if cursor.text.startswith(b"]"):
            cursor.drop(1)
            return
        place = cursor.line, cursor.column
        end = _end_of_item(cursor, limit)
        if end is None:
            yield BadLine(*place, _why_no_end(cursor, limit))
            return
        yield Found(cursor.drop(end).rstrip(), *place)
        if cursor.text.startswith(b","):
            cursor.drop(1)


def _why_no_end(cursor: _Cursor, limit: int) -> str:
    if len(cursor.text) > limit:
        return f"the record is longer than {limit:,} bytes"
    return "malformed JSON: the file ends in the middle of this record"


def _end_of_item(cursor: _Cursor, limit: int) -> int | None:
    """Where the value that begins here ends: at the comma or bracket that is not inside of it."""
    depth, at = 0, 0
    while len(cursor.text) <= limit:
        match = _MARKS.search(cursor.text, at)
        if match is None:
            at = len(cursor.text)
            if not cursor.more():
                return None
            continue
        mark, at = match.group(), match.end()
        if mark == b'"':
            end = _end_of_string(cursor, at, limit)
            if end is None:
                return None
            at = end
        elif depth == 0 and mark in b",]":
            return match.start()
        else:
            depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(mark, 0)
    return None


def _end_of_string(cursor: _Cursor, at: int, limit: int) -> int | None:
    while len(cursor.text) <= limit:
        match = _STRING_ENDS.search(cursor.text, at)
        if match and match.group() == b'"':
            return match.end()
        at = match.end() + 1 if match else len(cursor.text)  # what a backslash escapes is no end
        if at > len(cursor.text) - 1 and not cursor.more():
            return None
    return None
