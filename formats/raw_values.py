"""Split a JSON file into values, each with its line and column: the line numbers of an import come from here.

The beginning of a file shows whether it holds lines, arrays of records, or a single record. Memory is bounded, however
long a line or an array is.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import BinaryIO, NamedTuple

import msgspec

from formats import strict_json
from formats.records import BadLine

LINE_LIMIT = 32 * 1024 * 1024
TOO_LONG = f"the record is longer than {LINE_LIMIT:,} bytes"
_PIECE = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # some editors put it first; it is not part of the data
_MARKS = re.compile(rb'["\[\]{},]')
_DEPTHS = {b"[": 1, b"{": 1, b"]": -1, b"}": -1, b",": 0}
_STRING_MARKS = re.compile(rb'["\\]')
_SPACE = b" \t\r\n"


class RawValue(NamedTuple):
    """The bytes of one value and its place in the file."""

    raw: bytes
    line: int
    column: int = 1
    # Of a table row: the offset of each cell in `raw`, and the number of the cell. Of an object with renamed keys: the
    # offset of each member, and its column in the original.
    cells: tuple[tuple[int, int], ...] = ()
    original: "RawValue | None" = None  # before its keys were renamed

    def to_bad_line(self, refused: strict_json.JsonRefused) -> BadLine:
        """Convert a column inside the value to a place in the file. In a table, a column is the number of a cell."""
        if self.cells:
            column = max((column for begin, column in self.cells if begin < refused.column), default=1)
            if self.original:
                return self.original.to_bad_line(strict_json.JsonRefused(column, refused.reason))
            return BadLine(self.line, column, refused.reason)
        before = self.raw.decode(errors="replace")[: refused.column - 1]
        n_lines = before.count("\n")
        column = refused.column - before.rfind("\n") - 1 if n_lines else self.column + refused.column - 1
        return BadLine(self.line + n_lines, column, refused.reason)


RawValues = Iterable[RawValue | BadLine]


# --- lines -----------------------------------------------------------------------------------------------------------


def read_lines(stream: BinaryIO, *, begun: tuple[int, bytes] = (1, b"")) -> Iterator[tuple[int, bytes] | BadLine]:
    """Yield each line that is not blank with its number, without its line feed.

    `begun` is what `read_head` returned, if it was called before.
    """
    first, beginning = begun
    number = first - 1
    while line := _read_line(stream, beginning):
        beginning = b""
        number += 1
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if len(line) > LINE_LIMIT and not line.endswith(b"\n"):
            del line  # it may be very long: free it before the rest is read
            while (rest := stream.readline(_PIECE)) and not rest.endswith(b"\n"):
                pass
            reason = f"the line is longer than {LINE_LIMIT:,} bytes: split the record or the file"
            yield BadLine(number, LINE_LIMIT + 1, reason)
        elif line.strip():
            yield number, line.removesuffix(b"\n")


def read_head(stream: BinaryIO) -> tuple[int, bytes]:
    """Return the number and the beginning of the first line that is not blank."""
    number = 1
    line = stream.readline(_PIECE).removeprefix(_BYTE_ORDER_MARK)
    while line and not line.strip():
        number += line.endswith(b"\n")
        line = stream.readline(_PIECE)
    return number, line


def _read_line(stream: BinaryIO, beginning: bytes) -> bytes:
    if beginning.endswith(b"\n") or len(beginning) > LINE_LIMIT:
        return beginning
    return beginning + stream.readline(LINE_LIMIT + 1 - len(beginning))


# --- JSON values -----------------------------------------------------------------------------------------------------


def split_values(stream: BinaryIO, *, is_part: Callable[[bytes], bool] | None = None) -> Iterator[RawValue | BadLine]:
    """Yield each value of the file. An array is one value if `is_part` says so of its first item."""
    number, head = read_head(stream)
    if head.lstrip().startswith(b"["):
        yield from _split_arrays(_Cursor(stream, number, head), is_part)
        return
    items = read_lines(stream, begun=(number, head))
    first = next(items, None)
    if first and not isinstance(first, BadLine) and not _is_whole(first[1]):
        number, line = first
        rest = stream.read(LINE_LIMIT + 1)
        is_too_long = len(rest) > LINE_LIMIT
        yield BadLine(number, 1, TOO_LONG) if is_too_long else RawValue((line + b"\n" + rest).rstrip(), number)
        return
    for item in chain([first] if first else [], items):
        yield item if isinstance(item, BadLine) else RawValue(item[1], item[0])


def _is_whole(line: bytes) -> bool:
    """Tell whether the first line is a value by itself. A broken value counts: parsing it reports where."""
    return line.rstrip().endswith(b"}") or not line.strip().endswith((b"{", b",", b"["))


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


def _split_arrays(cursor: _Cursor, is_part: Callable[[bytes], bool] | None) -> Iterator[RawValue | BadLine]:
    """Yield the items of each array as soon as they are complete, or whole arrays."""
    while cursor.skip(_SPACE).startswith(b"["):
        end_of_first = _end_of_item(cursor, at=1) if is_part else None
        is_item = is_part is not None and is_part(cursor.text[1:end_of_first])
        for item in [_read_array(cursor)] if is_item else _items_of_one(cursor):
            yield item
            if isinstance(item, BadLine):
                return
    if cursor.text:
        yield BadLine(cursor.line, cursor.column, "more text after the end of the array")


def _read_array(cursor: _Cursor) -> RawValue | BadLine:
    """Read the array that begins here. If it has no end, parsing it reports where."""
    place = cursor.line, cursor.column
    end = _end_of_item(cursor, is_array=True)
    raw = cursor.drop(len(cursor.text) if end is None else end)
    return BadLine(*place, TOO_LONG) if len(raw) > LINE_LIMIT else RawValue(raw, *place)


def _items_of_one(cursor: _Cursor) -> Iterator[RawValue | BadLine]:
    cursor.drop(1)
    while True:
        cursor.skip(_SPACE)
        if cursor.text.startswith(b"]"):
            cursor.drop(1)
            return
        place = cursor.line, cursor.column
        end = _end_of_item(cursor)
        if end is None:
            is_too_long = len(cursor.text) > LINE_LIMIT
            reason = TOO_LONG if is_too_long else "malformed JSON: the file ends in the middle of this record"
            yield BadLine(*place, reason)
            return
        yield RawValue(cursor.drop(end).rstrip(), *place)
        if cursor.text.startswith(b","):
            cursor.drop(1)


def _advance(line: int, column: int, text: bytes) -> tuple[int, int]:
    """Return the place that follows the text, if the text begins at this line and column."""
    n_lines = text.count(b"\n")
    rest = len(text[text.rfind(b"\n") + 1 :].decode(errors="replace"))
    return line + n_lines, rest + 1 if n_lines else column + rest


def _end_of_item(cursor: _Cursor, *, at: int = 0, is_array: bool = False) -> int | None:
    """Find the end of the value that begins at `at`: the first comma or closing bracket at its level. An array ends
    with its own bracket."""
    depth, is_in_string = 0, False
    while len(cursor.text) <= LINE_LIMIT:
        match = (_STRING_MARKS if is_in_string else _MARKS).search(cursor.text, at)
        if match is None:
            at = max(at, len(cursor.text))
            if not cursor.more():
                return None
            continue
        mark, at = match.group(), match.end()
        if mark == b'"':
            is_in_string = not is_in_string
        elif mark == b"\\":
            at += 1  # an escaped quote does not end the string
        elif depth == 0 and mark in b",]":
            return match.start()
        else:
            depth += _DEPTHS[mark]
            if is_array and depth == 0:
                return at
    return None


def rename_keys(values: RawValues, columns: Mapping[str, str]) -> Iterator[RawValue | BadLine]:
    """Rename the keys of each object as `columns` says, and leave out those that it maps to nothing. A key that no
    object has yields a bad line at the end."""
    missing, n_values = dict.fromkeys(columns), 0
    for value in values:
        n_values += 1
        yield value if isinstance(value, BadLine) else _rename_members(value, columns, missing)
    if missing and n_values:
        yield BadLine(1, 1, f"no record has the key {', '.join(missing)[:200]}, which was to be renamed")


def _rename_members(value: RawValue, columns: Mapping[str, str], missing: dict[str, None]) -> RawValue | BadLine:
    try:
        offsets = strict_json.locate_values(value.raw)
    except strict_json.JsonRefused as refused:
        return value.to_bad_line(refused)
    if not value.raw.lstrip().startswith(b"{"):
        return value
    pieces: list[bytes] = []
    cells: list[tuple[int, int]] = []
    at, used = 0, set()
    for name, raw in msgspec.json.decode(value.raw, type=dict[str, msgspec.Raw]).items():
        missing.pop(name, None)
        key, offset = columns.get(name, name), offsets[name,]
        if key in used:
            return value.to_bad_line(strict_json.JsonRefused(offset + 1, f'two keys are named "{key}" after renaming'))
        if key:
            used.add(key)
            cells.append((at, offset + 1))
            pieces.append(b"%b%b: %b" % (b", " if pieces else b"{", msgspec.json.encode(key), bytes(raw)))
            at += len(pieces[-1].decode())
    return RawValue(b"".join(pieces or [b"{"]) + b"}", value.line, value.column, tuple(cells), value)


def parse_columns(text: str) -> dict[str, str]:
    """Parse "question=problem, notes=": names of columns or keys, and the format's. Raises ValueError."""
    pairs = [part.partition("=") for part in re.split(r"[,\n]", text) if part.strip()]
    if any(not equals or not name.strip() for name, equals, _key in pairs):
        raise ValueError(f'"{text[:200]}" is not a list of COLUMN=FIELD')
    return {name.strip(): key.strip() for name, _equals, key in pairs}
