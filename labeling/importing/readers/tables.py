"""Rows of CSV and Parquet files as the JSON records that they stand for, so that every format can come in a table.

A CSV cell is text. One that begins with a bracket or a brace is read as JSON (lists of steps, of labels); an empty one
is a key left out; numbers and truth values are made of text where the format asks for them. Places of errors are rows.
"""

import csv
import json
from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from labeling.importing.readers import lines
from labeling.importing.readers.objects import Found
from labeling.importing.records import BadLine

CSV = "csv"
PARQUET = "parquet"
_ROWS = 100  # of a Parquet file at a time


def kind_of(name: str) -> str | None:
    """Whether a file is a table, by the end of its name."""
    ending = name.rpartition(".")[2].lower()
    return ending if ending in {CSV, PARQUET} else None


def rows(stream: BinaryIO, kind: str) -> Iterator[Found | BadLine]:
    return _csv_rows(stream) if kind == CSV else _parquet_rows(stream)


def _csv_rows(stream: BinaryIO) -> Iterator[Found | BadLine]:
    csv.field_size_limit(lines.LINE_LIMIT)
    reader = csv.reader(_texts(stream), strict=True)
    try:
        names = next(reader, [])
        for cells in reader:
            if cells:
                yield _row(names, cells, reader.line_num)
    except (csv.Error, UnicodeDecodeError, _TooLong) as error:
        yield BadLine(reader.line_num + 1, 1, f"not CSV: {error}")


class _TooLong(Exception):
    """A line that would fill the memory."""


def _texts(stream: BinaryIO) -> Iterator[str]:
    is_first = True
    while line := stream.readline(lines.LINE_LIMIT + 1):
        if len(line) > lines.LINE_LIMIT:
            raise _TooLong(f"the line is longer than {lines.LINE_LIMIT:,} bytes")
        yield line.decode("utf-8-sig" if is_first else "utf-8")
        is_first = False


def _row(names: list[str], cells: list[str], line: int) -> Found | BadLine:
    if len(cells) != len(names) or len(set(names)) != len(names):
        return BadLine(line, 1, f"{len(cells)} cells under {len(names)} names (each name once)")
    try:
        record = {name: _value(cell) for name, cell in zip(names, cells, strict=True) if cell}
    except (ValueError, RecursionError) as error:
        return BadLine(line, 1, f"a cell begins like JSON and is none: {error}")
    return Found(json.dumps(record).encode(), line)


def _value(cell: str) -> Any:
    return json.loads(cell) if cell.lstrip()[:1] in {"[", "{"} else cell


def _parquet_rows(stream: BinaryIO) -> Iterator[Found | BadLine]:
    """Nulls of a column are keys left out: a table has no other way to say so."""
    import pyarrow
    from pyarrow import parquet

    number = 0
    try:
        for batch in parquet.ParquetFile(stream).iter_batches(batch_size=_ROWS):
            for record in batch.to_pylist():
                number += 1
                given = {name: value for name, value in record.items() if value is not None}
                yield Found(msgspec.json.encode(given), number)
    except (pyarrow.ArrowException, OSError, TypeError) as error:
        yield BadLine(number + 1, 1, f"not a Parquet file that can be read: {error}")
