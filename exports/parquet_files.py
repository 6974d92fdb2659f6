"""Parquet files of a snapshot while they are written. Imported by whoever writes one and by nobody else: pyarrow weighs
as much as Django, and most processes never write a table."""

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
    """Parquet with zstd and its features beside the schema. Rows wait until they fill a group."""

    def __init__(self, path: Path, of: Columns) -> None:
        self.path, self._schema = path, arrow_schema.make_schema(of)
        self._unfinished = path.with_name(path.name + ".unfinished")
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = pq.ParquetWriter(self._unfinished, self._schema, compression="zstd")
        self._waiting: list[OutputRow] = []
        self.rows = 0

    def write_rows(self, rows: Sequence[OutputRow]) -> None:
        self._waiting.extend(rows)
        self.rows += len(rows)
        while len(self._waiting) >= _ROW_GROUP:
            self._group(self._waiting[:_ROW_GROUP])
            self._waiting = self._waiting[_ROW_GROUP:]

    def _group(self, rows: list[OutputRow]) -> None:
        self._file.write_batch(arrow_schema.make_batch(rows, self._schema))

    def close(self) -> WrittenFile:
        if self._waiting:
            self._group(self._waiting)
        self._file.close()
        with self._unfinished.open("rb") as file:
            os.fsync(file.fileno())
        self._unfinished.replace(self.path)
        return WrittenFile(self.path.name, self.rows, self.path.stat().st_size, files.file_sha256(self.path))
