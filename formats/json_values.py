"""Finds the JSON values of a file one by one, in bounded memory: lines of JSON, arrays of records, or one record.

What the records mean is told by the reader of a format, which is given each value decoded.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import BinaryIO, NamedTuple, TypeVar

import msgspec

from formats import line_reader, strict_json
from formats.records import BadLine, TraceRecord

_T = TypeVar("_T")
_PIECE = 1 << 16
_MARKS = re.compile(rb'["\[\]{},]')
_STRING_ENDS = re.compile(rb'["\\]')
_SPACE = b" \t\r\n"


class RawValue(NamedTuple):
    """The bytes of one value, and where they begin in the file."""

    raw: bytes
    line: int
    column: int = 1
    array: int = 0  # in which array of the file it stands, counted from 1; 0: in none
    cells: tuple[tuple[int, int], ...] = ()  # of a row: where each cell begins in the text, and the cell's number

    def bad(self, refused: strict_json.JsonRefused) -> BadLine:
        """The place inside the value as a place in the file."""
        if self.cells:
            before_it = [number for begin, number in self.cells if begin < refused.column]
            return BadLine(self.line, max(before_it, default=1), refused.reason)
        before = self.raw.decode(errors="replace")[: refused.column - 1]
        below = before.count("\n")
        column = refused.column - before.rfind("\n") - 1 if below else self.column + refused.column - 1
        return BadLine(self.line + below, column, refused.reason)


def read_traces(
    stream: BinaryIO, decoder: "msgspec.json.Decoder[_T]", traces: Callable[[_T], Iterable[TraceRecord]]
) -> Iterator[TraceRecord | BadLine]:
    """The traces of every value in the file."""
    return parse_values(split_values(stream), decoder, traces)


def parse_values(
    given: "Iterable[RawValue | BadLine]",
    decoder: "msgspec.json.Decoder[_T]",
    traces: Callable[[_T], Iterable[TraceRecord]],
) -> Iterator[TraceRecord | BadLine]:
    """The traces of every value. A value that is refused gives no trace at all."""
    for found in given:
        if isinstance(found, BadLine):
            yield found
            continue
        try:
            value = strict_json.decode(found.raw, decoder)
            strict_json.check_strictness(found.raw)
            made = list(traces(value))
        except strict_json.JsonRefused as refused:
            yield found.bad(refused)
        except strict_json.RecordMisfit as misfit:
            yield found.bad(misfit.in_text(found.raw))
        else:
            yield from _number_records(made, found)


def split_values(stream: BinaryIO, *, limit: int = line_reader.LINE_LIMIT) -> Iterator[RawValue | BadLine]:
    """Each value of the file. Which of the three kinds of file it is shows at its beginning."""
    number, head = line_reader.read_head(stream)
    if head.lstrip().startswith(b"["):
        yield from _items(stream, number, head, limit)
        return
    items = line_reader.read_lines(stream, limit=limit, begun=(number, head))
    first = next(items, None)
    if first and not isinstance(first, BadLine) and not _is_whole(first[1]):
        yield _read_single_record(stream, *first, limit)
        return
    for item in chain([first] if first else [], items):
        yield item if isinstance(item, BadLine) else RawValue(item[1], item[0])


def _number_records(made: list[TraceRecord], found: RawValue) -> Iterator[TraceRecord]:
    digest = hashlib.sha256(found.raw).hexdigest()
    for number, record in enumerate(made):
        record.line = found.line
        record.digest = digest if number == 0 else hashlib.sha256(f"{digest}:{number}".encode()).hexdigest()
        yield record


def _is_whole(line: bytes) -> bool:
    """Whether the first line is a value by itself. One that is broken in the middle counts: the reader says where."""
    return line.rstrip().endswith(b"}") or not line.strip().endswith((b"{", b",", b"["))


def _read_single_record(stream: BinaryIO, number: int, line: bytes, limit: int) -> RawValue | BadLine:
    rest = stream.read(limit + 1)
    if len(rest) > limit:
        return BadLine(number, 1, f"the record is longer than {limit:,} bytes")
    return RawValue((line + b"\n" + rest).rstrip(), number)


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


def _items(stream: BinaryIO, number: int, line: bytes, limit: int) -> Iterator[RawValue | BadLine]:
    """The items of one array after the other, each as soon as it is whole."""
    cursor = _Cursor(stream, number, line)
    array = 0
    while cursor.skip(_SPACE).startswith(b"["):
        array += 1
        cursor.drop(1)
        for item in _items_of_one(cursor, limit):
            yield item._replace(array=array) if isinstance(item, RawValue) else item
            if isinstance(item, BadLine):
                return
    if cursor.text:
        yield BadLine(cursor.line, cursor.column, "more text after the end of the array")


def _items_of_one(cursor: _Cursor, limit: int) -> Iterator[RawValue | BadLine]:
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
        yield RawValue(cursor.drop(end).rstrip(), *place)
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


# Values that stand in one array put together again, where the array is the record and not its items.


def join_array_values(items: Iterable[RawValue | BadLine]) -> Iterator[RawValue | BadLine]:
    """Each array as one value. Of one that is broken somewhere nothing comes: half a record is none."""
    array: _Array | None = None
    for item in items:
        if isinstance(item, BadLine):
            yield item
            return
        if array is not None and item.array != array.number:
            yield array.whole()
            array = None
        if array is None:
            array = _Array(item)
        else:
            array.add(item)
        if array.size > line_reader.LINE_LIMIT:
            yield BadLine(array.line, array.column, f"the record is longer than {line_reader.LINE_LIMIT:,} bytes")
            return
    if array is not None:
        yield array.whole()


class _Array:
    """The text of an array, with as much space between its items that each stands where it stands in the file."""

    def __init__(self, first: RawValue) -> None:
        self.number = first.array
        self.line = first.line if first.column > 1 else first.line - 1
        self.column = max(first.column - 1, 1)
        self.size = 0
        self._pieces: list[bytes] = []
        self._at = self.line, self.column
        self._put(b"[")
        self._put_item(first)

    def add(self, item: RawValue) -> None:
        self._put(b",")
        self._put_item(item)

    def whole(self) -> RawValue:
        return RawValue(b"".join([*self._pieces, b"]"]), self.line, self.column, self.number)

    def _put_item(self, item: RawValue) -> None:
        line, column = self._at
        self._put(b"\n" * (item.line - line))
        self._put(b" " * (item.column - (column if item.line == line else 1)))
        self._put(item.raw)

    def _put(self, text: bytes) -> None:
        below = text.count(b"\n")
        rest = len(text[text.rfind(b"\n") + 1 :].decode(errors="replace"))
        line, column = self._at
        self._at = line + below, rest + 1 if below else column + rest
        self.size += len(text)
        self._pieces.append(text)
