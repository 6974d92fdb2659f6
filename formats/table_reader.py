"""Convert the rows of CSV and Parquet files to JSON values, so that every JSON format can also be read from a table.

A CSV cell is text. A cell that begins with a bracket or a brace is read as JSON where the format has lists or objects
(steps, labels); an empty cell is an absent key. Errors are reported by row and cell instead of line and column.
"""

import csv
import json
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO

import msgspec

from formats.json_values import LINE_LIMIT, RawValue
from formats.records import BadLine

CSV = "csv"
PARQUET = "parquet"
_BATCH_ROWS = 100  # rows of a Parquet file in memory


def detect_table_kind(name: str) -> str | None:
    """Return "csv" or "parquet" if the file name has that ending."""
    ending = name.rpartition(".")[2].lower()
    return ending if ending in {CSV, PARQUET} else None


def read_rows(stream: BinaryIO, kind: str, *, texts: Collection[str] = ()) -> Iterator[RawValue | BadLine]:
    """Yield each row as a JSON object. `texts` are the columns whose cells are text, however they begin."""
    return _csv_rows(stream, texts) if kind == CSV else _parquet_rows(stream)


def find_text_keys(record: Any) -> frozenset[str]:
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


def _csv_rows(stream: BinaryIO, texts: Collection[str]) -> Iterator[RawValue | BadLine]:
    csv.field_size_limit(LINE_LIMIT)
    reader = csv.reader(_decode_lines(stream), strict=True)
    begun = 1
    try:
        names = next(reader, [])
        begun = reader.line_num + 1
        for cells in reader:
            if cells:
                yield _make_row(names, cells, begun, texts)
            begun = reader.line_num + 1
    except UnicodeDecodeError as error:
        wrong = error.object[error.start]
        yield BadLine(reader.line_num + 1, 1, f"the byte 0x{wrong:02x} is not UTF-8: save the file as UTF-8")
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
    if len(set(names)) != len(names):
        return BadLine(line, 1, f"two columns have the same name: {', '.join(names)[:200]}")
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
        if not value:
            continue
        piece = b"%b%b: %b" % (b", " if pieces else b"{", msgspec.json.encode(name), value)
        cells.append((at, number))
        at += len(piece.decode())
        pieces.append(piece)
    return RawValue(b"".join(pieces or [b"{"]) + b"}", line, cells=tuple(cells))


def _parquet_rows(stream: BinaryIO) -> Iterator[RawValue | BadLine]:
    """Yield the rows of a Parquet file. Nulls are absent keys: a table cannot tell the two apart."""
    import pyarrow
    from pyarrow import parquet

    number = 0
    try:
        file = parquet.ParquetFile(stream)
        names = list(file.schema_arrow.names)
        for batch in file.iter_batches(batch_size=_BATCH_ROWS):
            for record in batch.to_pylist():
                number += 1
                values = [msgspec.json.encode(value) if value is not None else b"" for value in record.values()]
                yield _make_value(values, names, number)
    except (pyarrow.ArrowException, OSError, TypeError) as error:
        yield BadLine(number + 1, 1, f"this Parquet file cannot be read: {error}")
