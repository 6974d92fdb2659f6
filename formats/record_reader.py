"""Read the records of a format from JSON Lines, JSON arrays, a single JSON object, CSV or Parquet.

A file is split into JSON values, each with its line and column; the line numbers of an import come from here. The
beginning of a JSON file shows whether it holds lines, arrays of records, or a single record. Memory is bounded, however
long a line or an array is.

A CSV cell is text. A cell that begins with a bracket or a brace is read as JSON where the format has lists or objects
(steps, labels); an empty cell is an absent key. Errors in tables are reported by row and cell.
"""

import csv
import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, BinaryIO, NamedTuple

import msgspec

from formats import strict_json
from formats.input_files import CSV
from formats.records import BadLine, TraceRecord

LINE_LIMIT = 32 * 1024 * 1024
_TOO_LONG = f"the record is longer than {LINE_LIMIT:,} bytes"
_PIECE = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # some editors put it first; it is not part of the data
_MARKS = re.compile(rb'["\[\]{},]')
_DEPTHS = {b"[": 1, b"{": 1, b"]": -1, b"}": -1, b",": 0}
_STRING_MARKS = re.compile(rb'["\\]')
_SPACE = b" \t\r\n"
_BATCH_ROWS = 100  # rows of a Parquet file in memory


class RawValue(NamedTuple):
    """The bytes of one value and its place in the file."""

    raw: bytes
    line: int
    column: int = 1
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


RawValues = Iterable[RawValue | BadLine]


class RecordReader:
    """The `read` of a format, built from the type of its items and a function that makes traces of one item.

    `looks_like` tells whether a value seems to be a record of the format; by default, whether it has the keys that an
    item must have. `regroup` splits the raw values of a JSON file that are several items, and `is_part` tells whether
    the first value of an array is only a part of an item, so that the array is the item. With `takes_segmenter`,
    `parse` accepts the name of a segmenter for texts that are not divided into steps.
    """

    def __init__(
        self,
        item: Any,
        parse: Callable[..., Iterable[TraceRecord]],
        *,
        looks_like: Callable[[Any], bool] | None = None,
        regroup: Callable[[RawValues], Iterator[RawValue | BadLine]] = iter,
        is_part: Callable[[bytes], bool] | None = None,
        takes_segmenter: bool = False,
    ) -> None:
        self.decoder = msgspec.json.Decoder(item)
        # CSV cells are text: numbers and truth values are converted where the format has them.
        self._csv_decoder = msgspec.json.Decoder(item, strict=False)
        self._text_keys = _find_text_keys(item)
        self.looks_like = looks_like or self._has_required_keys
        self._parse, self._regroup, self._is_part, self._takes_segmenter = parse, regroup, is_part, takes_segmenter

    def _has_required_keys(self, record: object) -> bool:
        required = {field.encode_name for field in msgspec.structs.fields(self.decoder.type) if field.required}
        return isinstance(record, dict) and required <= record.keys()

    def __call__(
        self,
        stream: BinaryIO,
        *,
        table: str | None = None,
        segmenter: str = "",
        columns: Mapping[str, str] | None = None,
    ) -> Iterator[TraceRecord | BadLine]:
        """Yield every record of the file in order. `table` is "csv" or "parquet", None for JSON."""
        parse = partial(self._parse, segmenter=segmenter) if segmenter and self._takes_segmenter else self._parse
        if table is None:
            values = self._regroup(split_values(stream, is_part=self._is_part))
            return _parse_values(values, self.decoder, parse)
        decoder = self._csv_decoder if table == CSV else self.decoder
        return _parse_values(read_rows(stream, table, texts=self._text_keys, columns=columns), decoder, parse)


def _parse_values(
    values: RawValues, decoder: "msgspec.json.Decoder[Any]", parse: Callable[[Any], Iterable[TraceRecord]]
) -> Iterator[TraceRecord | BadLine]:
    """Yield the traces of every value. A value with an error yields a bad line and no trace."""
    for value in values:
        if isinstance(value, BadLine):
            yield value
            continue
        try:
            item = strict_json.decode(value.raw, decoder)
            strict_json.check_strictness(value.raw)
            records = list(parse(item))
        except strict_json.JsonRefused as refused:
            yield value.to_bad_line(refused)
        except strict_json.RecordMisfit as misfit:
            yield value.to_bad_line(misfit.locate_in(value.raw))
        else:
            yield from _identify_records(records, value)


def _identify_records(records: list[TraceRecord], value: RawValue) -> Iterator[TraceRecord]:
    """Give each record of a value its line, its digest, and the origin of its outcome."""
    digest = hashlib.sha256(value.raw).hexdigest()
    for number, record in enumerate(records):
        record.line = value.line
        if record.is_right is not None and not record.outcome_by:
            record.outcome_by = "file"
        record.digest = digest if number == 0 else hashlib.sha256(f"{digest}:{number}".encode()).hexdigest()
        yield record


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
        yield BadLine(number, 1, _TOO_LONG) if is_too_long else RawValue((line + b"\n" + rest).rstrip(), number)
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
    return BadLine(*place, _TOO_LONG) if len(raw) > LINE_LIMIT else RawValue(raw, *place)


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
            reason = _TOO_LONG if is_too_long else "malformed JSON: the file ends in the middle of this record"
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


# --- tables ----------------------------------------------------------------------------------------------------------


def read_rows(
    stream: BinaryIO, kind: str, *, texts: Collection[str] = (), columns: Mapping[str, str] | None = None
) -> Iterator[RawValue | BadLine]:
    """Yield each row as a JSON object. `texts` are the keys whose cells are text, however they begin.

    `columns` maps columns to keys. A column that is mapped to nothing is left out, and so is one without a name, as
    pandas writes its index.
    """
    return _csv_rows(stream, texts, columns or {}) if kind == CSV else _parquet_rows(stream, columns or {})


def parse_columns(text: str) -> dict[str, str]:
    """Parse "question=problem, notes=". Raises ValueError."""
    pairs = [part.partition("=") for part in re.split(r"[,\n]", text) if part.strip()]
    if any(not equals or not name.strip() for name, equals, _key in pairs):
        raise ValueError(f'"{text[:200]}" is not a list of COLUMN=FIELD')
    return {name.strip(): key.strip() for name, _equals, key in pairs}


def _rename_columns(names: list[str], columns: Mapping[str, str]) -> list[str]:
    """Return the key of each column, "" if it is left out. Raises `_BadHeader`."""
    if missing := [name for name in columns if name not in names]:
        raise _BadHeader(f"the table has no column {', '.join(missing)[:200]}: it has {', '.join(names)[:500]}")
    keys = [columns.get(name, name) for name in names]
    used = [key for key in keys if key]
    if len(set(used)) != len(used):
        raise _BadHeader(f"two columns have the same name: {', '.join(keys)[:200]}")
    return keys


class _BadHeader(Exception):
    """The columns of a table do not fit."""


def _find_text_keys(record: Any) -> frozenset[str]:
    """Return the keys of a record type whose values can be text but not a list or an object."""
    info = msgspec.inspect.type_info(record)
    kinds = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
    fields = (field for kind in kinds if isinstance(kind, msgspec.inspect.StructType) for field in kind.fields)
    return frozenset(field.encode_name for field in fields if _is_text(field.type))


def _is_text(kind: msgspec.inspect.Type) -> bool:
    kinds = kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,)
    longer = msgspec.inspect.CollectionType | msgspec.inspect.DictType | msgspec.inspect.StructType
    return any(isinstance(one, msgspec.inspect.StrType) for one in kinds) and not any(
        isinstance(one, longer) for one in kinds
    )


def _csv_rows(stream: BinaryIO, texts: Collection[str], columns: Mapping[str, str]) -> Iterator[RawValue | BadLine]:
    csv.field_size_limit(LINE_LIMIT)
    reader = csv.reader(_decode_lines(stream), strict=True)
    begun = 1
    try:
        names = _rename_columns(next(reader, []), columns)
        begun = reader.line_num + 1
        for cells in reader:
            if cells:
                yield _make_row(names, cells, begun, texts)
            begun = reader.line_num + 1
    except UnicodeDecodeError as error:
        wrong = error.object[error.start]
        yield BadLine(reader.line_num + 1, 1, f"the byte 0x{wrong:02x} is not UTF-8: save the file as UTF-8")
    except _BadHeader as error:
        yield BadLine(1, 1, str(error))
    except (csv.Error, _LineTooLong) as error:
        yield BadLine(begun, 1, f"not CSV: {error}")


class _LineTooLong(Exception):
    """A line that is too long to be kept in memory."""


def _decode_lines(stream: BinaryIO) -> Iterator[str]:
    is_first = True
    while line := stream.readline(LINE_LIMIT + 1):
        if len(line) > LINE_LIMIT:
            raise _LineTooLong(f"the line is longer than {LINE_LIMIT:,} bytes")
        yield line.decode("utf-8-sig" if is_first else "utf-8")
        is_first = False


def _make_row(names: list[str], cells: list[str], line: int, texts: Collection[str]) -> RawValue | BadLine:
    if len(cells) != len(names):
        return BadLine(line, 1, f"the row has {len(cells)} cells, the header has {len(names)}")
    return _make_value(
        [_encode_text(cell) if name in texts else _parse_cell(cell) for name, cell in zip(names, cells, strict=True)],
        names,
        line,
    )


def _parse_cell(cell: str) -> bytes:
    """Return a cell as JSON. Invalid JSON is kept as text; the format decides whether text is allowed."""
    if cell.lstrip()[:1] in {"[", "{"}:
        with suppress(ValueError, RecursionError):
            json.loads(cell)
            return cell.encode()
    return _encode_text(cell)


def _encode_text(cell: str) -> bytes:
    return msgspec.json.encode(cell) if cell else b""


def _make_value(values: Iterable[bytes], names: list[str], line: int) -> RawValue:
    """Compose the JSON object of a row. An empty value is an absent key."""
    pieces: list[bytes] = []
    cells: list[tuple[int, int]] = []
    at = 0
    for number, (name, value) in enumerate(zip(names, values, strict=True), start=1):
        if not value or not name:
            continue
        piece = b"%b%b: %b" % (b", " if pieces else b"{", msgspec.json.encode(name), value)
        cells.append((at, number))
        at += len(piece.decode())
        pieces.append(piece)
    return RawValue(b"".join(pieces or [b"{"]) + b"}", line, cells=tuple(cells))


def _parquet_rows(stream: BinaryIO, columns: Mapping[str, str]) -> Iterator[RawValue | BadLine]:
    """Yield the rows of a Parquet file. Nulls are absent keys: a table cannot tell the two apart."""
    import pyarrow
    from pyarrow import parquet

    number = 0
    try:
        file = parquet.ParquetFile(stream)
        names = _rename_columns(list(file.schema_arrow.names), columns)
        for batch in file.iter_batches(batch_size=_BATCH_ROWS):
            for record in batch.to_pylist():
                number += 1
                values = [msgspec.json.encode(value) if value is not None else b"" for value in record.values()]
                yield _make_value(values, names, number)
    except _BadHeader as error:
        yield BadLine(1, 1, str(error))
    except (pyarrow.ArrowException, OSError, TypeError) as error:
        yield BadLine(number + 1, 1, f"this Parquet file cannot be read: {error}")
