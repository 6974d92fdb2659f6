"""Split a file into JSON values, each with its line and column. The line numbers of an import come from here.

A file holds JSON Lines, one or more arrays of records, or a single record; its beginning shows which. Memory is
bounded, however long a line or an array is. `formats.table_reader` yields the rows of CSV and Parquet files as the same
values, and `formats.record_reader` turns values into records.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import BinaryIO, NamedTuple

from formats import strict_json
from formats.records import BadLine

LINE_LIMIT = 32 * 1024 * 1024
_PIECE = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # some editors put it first; it is not part of the data
_MARKS = re.compile(rb'["\[\]{},]')
_STRING_ENDS = re.compile(rb'["\\]')
_SPACE = b" \t\r\n"


class RawValue(NamedTuple):
    """The bytes of one value and its place in the file."""

    raw: bytes
    line: int
    column: int = 1
    array: int = 0  # number of the array that contains it, from 1; 0 if none does
    cells: tuple[tuple[int, int], ...] = ()  # of a table row: the offset of each cell in `raw`, and the cell's number

    def to_bad_line(self, refused: strict_json.JsonRefused) -> BadLine:
        """Convert a column inside the value to a place in the file. In a table, a column is the number of a cell."""
        if self.cells:
            cells_before = [number for begin, number in self.cells if begin < refused.column]
            return BadLine(self.line, max(cells_before, default=1), refused.reason)
        before = self.raw.decode(errors="replace")[: refused.column - 1]
        n_lines = before.count("\n")
        column = refused.column - before.rfind("\n") - 1 if n_lines else self.column + refused.column - 1
        return BadLine(self.line + n_lines, column, refused.reason)


# --- lines ---------------------------------------------------------------------------------------------------------


def read_lines(
    stream: BinaryIO, *, limit: int = LINE_LIMIT, begun: tuple[int, bytes] = (1, b"")
) -> Iterator[tuple[int, bytes] | BadLine]:
    """Yield each line that is not blank with its number, without its line feed.

    `begun` is what `read_head` returned, if it was called before.
    """
    first, beginning = begun
    number = first - 1
    while line := _read_line(stream, beginning, limit):
        beginning = b""
        number += 1
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if len(line) > limit and not line.endswith(b"\n"):
            del line  # it may be very long: free it before the rest is read
            _skip_rest_of_line(stream)
            yield BadLine(number, limit + 1, f"the line is longer than {limit:,} bytes: split the record or the file")
        elif line.strip():
            yield number, line.removesuffix(b"\n")


def read_head(stream: BinaryIO, *, limit: int = 1 << 16) -> tuple[int, bytes]:
    """Return the number and the beginning of the first line that is not blank."""
    number = 1
    line = stream.readline(limit).removeprefix(_BYTE_ORDER_MARK)
    while line and not line.strip():
        number += line.endswith(b"\n")
        line = stream.readline(limit)
    return number, line


def _read_line(stream: BinaryIO, beginning: bytes, limit: int) -> bytes:
    if beginning.endswith(b"\n") or len(beginning) > limit:
        return beginning
    return beginning + stream.readline(limit + 1 - len(beginning))


def _skip_rest_of_line(stream: BinaryIO) -> None:
    while (piece := stream.readline(_PIECE)) and not piece.endswith(b"\n"):
        pass


# --- values --------------------------------------------------------------------------------------------------------


def split_values(stream: BinaryIO, *, limit: int = LINE_LIMIT) -> Iterator[RawValue | BadLine]:
    """Yield each value of the file."""
    number, head = read_head(stream)
    if head.lstrip().startswith(b"["):
        yield from _items(stream, number, head, limit)
        return
    items = read_lines(stream, limit=limit, begun=(number, head))
    first = next(items, None)
    if first and not isinstance(first, BadLine) and not _is_whole(first[1]):
        yield _read_single_record(stream, *first, limit)
        return
    for item in chain([first] if first else [], items):
        yield item if isinstance(item, BadLine) else RawValue(item[1], item[0])


def _is_whole(line: bytes) -> bool:
    """Tell whether the first line is a value by itself. A broken value counts: parsing it reports where."""
    return line.rstrip().endswith(b"}") or not line.strip().endswith((b"{", b",", b"["))


def _read_single_record(stream: BinaryIO, number: int, line: bytes, limit: int) -> RawValue | BadLine:
    rest = stream.read(limit + 1)
    if len(rest) > limit:
        return BadLine(number, 1, _too_long(limit))
    return RawValue((line + b"\n" + rest).rstrip(), number)


class _Cursor:
    """The unread text of a stream, extended on demand, with the line and column where it begins."""

    def __init__(self, stream: BinaryIO, line: int, text: bytes) -> None:
        self.stream = stream
        self.text = text
        self.line = line
        self.column = 1

    def more(self) -> bool:
        piece = self.stream.read(_PIECE)
        self.text += piece
        return bool(piece)

    def drop(self, end: int) -> bytes:
        """Remove and return the text before `end`, and advance line and column past it."""
        removed, self.text = self.text[:end], self.text[end:]
        self.line, self.column = _advance(self.line, self.column, removed)
        return removed

    def skip(self, ignored: bytes) -> bytes:
        """Skip the ignored bytes and return the text that follows."""
        while True:
            stripped = self.text.lstrip(ignored)
            self.drop(len(self.text) - len(stripped))
            if stripped or not self.more():
                return stripped


def _items(stream: BinaryIO, number: int, line: bytes, limit: int) -> Iterator[RawValue | BadLine]:
    """Yield the items of each array as soon as they are complete."""
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
            is_too_long = len(cursor.text) > limit
            reason = _too_long(limit) if is_too_long else "malformed JSON: the file ends in the middle of this record"
            yield BadLine(*place, reason)
            return
        yield RawValue(cursor.drop(end).rstrip(), *place)
        if cursor.text.startswith(b","):
            cursor.drop(1)


def _too_long(limit: int) -> str:
    return f"the record is longer than {limit:,} bytes"


def _advance(line: int, column: int, text: bytes) -> tuple[int, int]:
    """Return the place that follows the text, if the text begins at this line and column."""
    n_lines = text.count(b"\n")
    rest = len(text[text.rfind(b"\n") + 1 :].decode(errors="replace"))
    return line + n_lines, rest + 1 if n_lines else column + rest


def _end_of_item(cursor: _Cursor, limit: int) -> int | None:
    """Find the end of the value that begins here: the first comma or closing bracket at its level."""
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
        at = match.end() + 1 if match else len(cursor.text)  # an escaped quote does not end the string
        if at > len(cursor.text) - 1 and not cursor.more():
            return None
    return None


# --- arrays that are one record ------------------------------------------------------------------------------------


def join_array_values(items: Iterable[RawValue | BadLine]) -> Iterator[RawValue | BadLine]:
    """Join the items of each array into one value. A broken array yields no value."""
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
        if array.size > LINE_LIMIT:
            yield BadLine(array.line, array.column, _too_long(LINE_LIMIT))
            return
    if array is not None:
        yield array.whole()


class _Array:
    """The text of an array, padded so that each item keeps the line and column it has in the file."""

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
        self._at = _advance(*self._at, text)
        self.size += len(text)
        self._pieces.append(text)
