"""Write the files of a snapshot. A file has a temporary name until it is complete."""

import csv
import gzip
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import zstandard
from msgspec import Struct

from formats.examples import Columns, OutputRow, make_arrow_schema

_LEVEL = 6
_ROW_GROUP = 10_000
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that the format can express


class WrittenFile(Struct):
    name: str
    rows: int
    size: int
    sha256: str
    format: str = ""
    split: str = ""


class JsonLinesFile:
    """JSON Lines, compressed as `ending` says. Each chunk is a separate compression frame."""

    def __init__(self, path: Path, ending: str) -> None:
        self.path, self._ending = path, ending
        self._unfinished = _prepare_unfinished(path)
        self._file = self._unfinished.open("wb")
        self._digest = hashlib.sha256()
        self.rows = 0

    def write(self, lines: Sequence[bytes]) -> None:
        if not lines:
            return
        frame = _compress(b"".join(lines), self._ending)
        self._file.write(frame)
        self._digest.update(frame)
        self.rows += len(lines)

    def write_rows(self, rows: Sequence[OutputRow]) -> None:
        self.write([json.dumps(row).encode("ascii") + b"\n" for row in rows])

    def close(self) -> WrittenFile:
        """Sync, then rename, so that a partial file never has the final name."""
        self._file.flush()
        os.fsync(self._file.fileno())
        size = self._file.tell()
        self._file.close()
        self._unfinished.replace(self.path)
        return WrittenFile(self.path.name, self.rows, size, self._digest.hexdigest())


class ParquetTableFile:
    """A Parquet file with zstd and the hub's features in its metadata. Rows are buffered until they fill a group."""

    def __init__(self, path: Path, columns: Columns) -> None:
        from pyarrow import parquet  # takes as much memory as Django, and most processes never need it

        self.path, self._schema = path, make_arrow_schema(columns)
        self._unfinished = _prepare_unfinished(path)
        self._file = parquet.ParquetWriter(self._unfinished, self._schema, compression="zstd")
        self._buffer: list[OutputRow] = []
        self.rows = 0

    def write_rows(self, rows: Sequence[OutputRow]) -> None:
        self._buffer.extend(rows)
        self.rows += len(rows)
        while len(self._buffer) >= _ROW_GROUP:
            self._write_group(self._buffer[:_ROW_GROUP])
            self._buffer = self._buffer[_ROW_GROUP:]

    def _write_group(self, rows: list[OutputRow]) -> None:
        import pyarrow

        self._file.write_batch(pyarrow.RecordBatch.from_pylist(rows, schema=self._schema))

    def close(self) -> WrittenFile:
        if self._buffer:
            self._write_group(self._buffer)
        self._file.close()
        with self._unfinished.open("rb") as file:
            os.fsync(file.fileno())
        self._unfinished.replace(self.path)
        return WrittenFile(self.path.name, self.rows, self.path.stat().st_size, _hash_file(self.path))


class CsvFile(JsonLinesFile):
    """A table as CSV with a header. Lists, objects and truth values are JSON; an empty cell is null."""

    def __init__(self, path: Path, columns: Columns) -> None:
        super().__init__(path, "csv")
        self._columns = list(columns)
        self.write([_make_csv_line(self._columns)])
        self.rows = 0

    def write_rows(self, rows: Sequence[OutputRow]) -> None:
        self.write([_make_csv_line(map(_encode_cell, map(row.get, self._columns))) for row in rows])


class ImageArchive:
    """A ZIP archive of PNG images, which are packed already. The same images in the same order give the same bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._unfinished = _prepare_unfinished(path)
        self._archive = zipfile.ZipFile(self._unfinished, "w", zipfile.ZIP_STORED)
        self.names: set[str] = set()

    def add(self, name: str, content: bytes) -> None:
        self.names.add(name)
        self._archive.writestr(zipfile.ZipInfo(name, date_time=_ZIP_TIME), content)

    def close(self) -> WrittenFile:
        self._archive.close()
        with self._unfinished.open("rb") as file:
            os.fsync(file.fileno())
        self._unfinished.replace(self.path)
        return WrittenFile(self.path.name, len(self.names), self.path.stat().st_size, _hash_file(self.path))


SnapshotFileWriter = JsonLinesFile | ParquetTableFile


def _make_csv_line(cells: Iterable[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue().encode()


def _encode_cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def write_text(path: Path, text: str) -> WrittenFile:
    """Write a small file atomically."""
    unfinished = _prepare_unfinished(path)
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
    return WrittenFile(path.name, 0, path.stat().st_size, _hash_file(path))


def write_json(path: Path, content: Any) -> WrittenFile:
    return write_text(path, json.dumps(content, indent=2, sort_keys=True) + "\n")


def _prepare_unfinished(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(path.name + ".unfinished")


def _compress(data: bytes, ending: str) -> bytes:
    if ending.endswith(".gz"):
        return gzip.compress(data, _LEVEL, mtime=0)
    if ending.endswith(".zst"):
        return zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True).compress(data)
    return data


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
