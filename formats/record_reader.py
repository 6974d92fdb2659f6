"""Read the records of a format from JSON Lines, JSON arrays, a single JSON object, CSV or Parquet.

A CSV cell is text. A cell that begins with a bracket or a brace is read as JSON where the format has lists or objects
(steps, labels); an empty cell is an absent key. Errors in tables are reported by row and cell.
"""

import csv
import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO

import msgspec

from formats import strict_json
from formats.input_files import CSV, FREE_BYTES, RATIO_LIMIT
from formats.raw_values import LINE_LIMIT, TOO_LONG, RawValue, RawValues, rename_keys, split_values
from formats.records import BadLine, OriginalRecord, TraceRecord

_anything: "msgspec.json.Decoder[Any]" = msgspec.json.Decoder(Any)
# Of a Parquet file. A column chunk is a column of a row group.
COLUMN_LIMIT = 1000
CHUNK_LIMIT = 1024**3
_BATCH_ROWS = 100  # in memory
_BATCH_BYTES = 256 * 1024**2


class RecordReader:
    """The `read` of a format, built from the type of its items and a function that makes traces of one item.

    `looks_like` tells whether a value seems to be a record of the format; by default, whether it has the keys that an
    item must have. `regroup` splits the raw values of a JSON file that are several items, and `is_part` tells whether
    the first value of an array is only a part of an item, so that the array is the item. With `takes_segmenter`,
    `parse` accepts the name of a segmenter for texts that are not divided into steps. With `keeps_extras`, it accepts
    the members of an item that its type does not define. `keep` returns what must be kept of an item to write it again,
    given its members and its trace.
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
        keeps_extras: bool = False,
        keep: Callable[[dict[str, Any], TraceRecord], OriginalRecord | None] | None = None,
    ) -> None:
        self.decoder = msgspec.json.Decoder(item)
        # CSV cells are text: numbers and truth values are converted where the format has them.
        self._csv_decoder = msgspec.json.Decoder(item, strict=False)
        self._text_keys = _find_text_keys(item)
        self.looks_like = looks_like or self._has_required_keys
        self._parse, self._regroup, self._is_part, self._takes_segmenter = parse, regroup, is_part, takes_segmenter
        self._keeps_extras, self._keep = keeps_extras, keep
        self._keys = _find_keys(item)

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
        """Yield every record of the file in order. `table` is "csv" or "parquet", None for JSON. `columns` maps the
        columns of a table, or the keys of records, to keys of the format."""
        if table is None:
            values = self._regroup(split_values(stream, is_part=self._is_part))
            return self._parse_values(rename_keys(values, columns) if columns else values, self.decoder, segmenter)
        decoder = self._csv_decoder if table == CSV else self.decoder
        texts = self._text_keys
        return self._parse_values(read_rows(stream, table, texts=texts, columns=columns), decoder, segmenter)

    def _parse_values(
        self, values: RawValues, decoder: "msgspec.json.Decoder[Any]", segmenter: str
    ) -> Iterator[TraceRecord | BadLine]:
        parse = partial(self._parse, segmenter=segmenter) if segmenter and self._takes_segmenter else self._parse
        return _parse_values(values, partial(self._parse_value, decoder=decoder, parse=parse))

    def _parse_value(
        self, value: RawValue, *, decoder: "msgspec.json.Decoder[Any]", parse: Callable[..., Iterable[TraceRecord]]
    ) -> list[TraceRecord]:
        item = strict_json.decode(value.raw, decoder)
        members = strict_json.check_strictness(value.raw)
        has_extras = self._keeps_extras and isinstance(members, dict) and not self._keys.issuperset(members)
        if not has_extras and self._keep is None:
            return list(parse(item))
        # Decoded again, because Python's own module accepts numbers that are too large.
        members = strict_json.decode(value.raw, _anything)
        extras = {key: members[key] for key in members if key not in self._keys} if has_extras else {}
        records = list(parse(item, extras=extras) if has_extras else parse(item))
        for record in records:
            record.original = (
                self._keep(json.loads(value.raw), record) if self._keep and isinstance(members, dict) else None
            )
        return records


def _parse_values(values: RawValues, parse: Callable[[RawValue], list[TraceRecord]]) -> Iterator[TraceRecord | BadLine]:
    """Yield the traces of every value. A value with an error yields a bad line and no trace."""
    for value in values:
        if isinstance(value, BadLine):
            yield value
            continue
        try:
            records = parse(value)
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


# --- tables ----------------------------------------------------------------------------------------------------------


def read_rows(
    stream: BinaryIO, kind: str, *, texts: Collection[str] = (), columns: Mapping[str, str] | None = None
) -> Iterator[RawValue | BadLine]:
    """Yield each row as a JSON object. `texts` are the keys whose cells are text, however they begin.

    `columns` maps columns to keys. A column that is mapped to nothing is left out, and so is one without a name, as
    pandas writes its index.
    """
    return _csv_rows(stream, texts, columns or {}) if kind == CSV else _parquet_rows(stream, columns or {})


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
    return frozenset(field.encode_name for field in _list_fields(record) if _is_text(field.type))


def _find_keys(record: Any) -> frozenset[str]:
    return frozenset(field.encode_name for field in _list_fields(record))


def _list_fields(record: Any) -> Iterator[msgspec.inspect.Field]:
    info = msgspec.inspect.type_info(record)
    kinds = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
    return (field for kind in kinds if isinstance(kind, msgspec.inspect.StructType) for field in kind.fields)


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


def _check_parquet_sizes(metadata: Any) -> int:
    """Return how many rows may be in memory at a time. Raises `_BadHeader` for a file that unpacks to too much.

    Every cell of a column may be as large as the whole column chunk: a dictionary stores a repeated text once."""
    if metadata.num_columns > COLUMN_LIMIT:
        raise _BadHeader(f"the table has {metadata.num_columns:,} columns: the limit is {COLUMN_LIMIT:,}")
    largest = 1
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for column in range(metadata.num_columns):
            chunk = row_group.column(column)
            unpacked, packed = chunk.total_uncompressed_size, chunk.total_compressed_size
            place = f"column {chunk.path_in_schema} of row group {group + 1}"
            if unpacked > CHUNK_LIMIT:
                raise _BadHeader(
                    f"{place} has {unpacked:,} bytes: the limit is {CHUNK_LIMIT:,}. Write smaller row groups"
                )
            if unpacked > FREE_BYTES + RATIO_LIMIT * packed:
                raise _BadHeader(f"{place} unpacks to more than {RATIO_LIMIT} times its size")
            largest = max(largest, unpacked)
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES // largest))


def _parquet_rows(stream: BinaryIO, columns: Mapping[str, str]) -> Iterator[RawValue | BadLine]:
    """Yield the rows of a Parquet file. Nulls are absent keys: a table cannot tell the two apart."""
    import pyarrow
    from pyarrow import parquet

    number = 0
    try:
        file = parquet.ParquetFile(stream)
        batch_rows = _check_parquet_sizes(file.metadata)
        names = _rename_columns(list(file.schema_arrow.names), columns)
        for batch in file.iter_batches(batch_size=batch_rows):
            for record in batch.to_pylist():
                number += 1
                values = [msgspec.json.encode(value) if value is not None else b"" for value in record.values()]
                is_too_long = sum(map(len, values)) > LINE_LIMIT
                yield BadLine(number, 1, TOO_LONG) if is_too_long else _make_value(values, names, number)
    except _BadHeader as error:
        yield BadLine(1, 1, str(error))
    except MemoryError:  # Arrow's own is an ArrowException, too
        raise
    except (pyarrow.ArrowException, OSError, TypeError) as error:
        yield BadLine(number + 1, 1, f"this Parquet file cannot be read: {error}")
