"""Write Parquet files of a snapshot. Import this module only where one is written: pyarrow takes as much memory as
Django, and most processes never need it."""

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from exports import files
from exports.files import WrittenFile
from formats import arrow_schema
from formats.columns import Columns, OutputRow

_ROW_GROUP = 10_000


class ParquetTableFile:
    """A Parquet file with zstd and the hub's features in its metadata. Rows are buffered until they fill a group."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self.path, self._schema = path, arrow_schema.make_schema(columns)
        self._unfinished = path.with_name(path.name + ".unfinished")
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = pq.ParquetWriter(self._unfinished, self._schema, compression="zstd")
        self._buffer: list[OutputRow] = []
        self.rows = 0

    def write_rows(self, rows: Sequence[OutputRow]) -> None:
        self._buffer.extend(rows)
        self.rows += len(rows)
        while len(self._buffer) >= _ROW_GROUP:
            self._write_group(self._buffer[:_ROW_GROUP])
            self._buffer = self._buffer[_ROW_GROUP:]

    def _write_group(self, rows: list[OutputRow]) -> None:
        self._file.write_batch(arrow_schema.make_batch(rows, self._schema))

    def close(self) -> WrittenFile:
        if self._buffer:
            self._write_group(self._buffer)
        self._file.close()
        with self._unfinished.open("rb") as file:
            os.fsync(file.fileno())
        self._unfinished.replace(self.path)
        return WrittenFile(self.path.name, self.rows, self.path.stat().st_size, files.file_sha256(self.path))
