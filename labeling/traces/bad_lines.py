"""All bad lines of a file, in a table beside the data that can be fetched: the report itself keeps the first."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from django.conf import settings

from formats.records import BadLine

HEADER = ("line", "column", "reason")


class BadLineWriter(Protocol):
    def write(self, line: BadLine) -> None: ...


class _CsvWriter:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("w", encoding="utf-8", newline="")
        self._csv = csv.writer(self._file)
        self._csv.writerow(HEADER)
        self._rows = 0

    def write(self, line: BadLine) -> None:
        self._csv.writerow((line.line, line.column, line.reason))
        self._rows += 1

    def close(self) -> None:
        self._file.close()
        if not self._rows:
            self._path.unlink()


class _NullWriter:
    def write(self, line: BadLine) -> None:
        """The first lines stand in the report; nobody asked for more."""


def path_for_job(job_id: int) -> Path:
    return Path(settings.DATA_DIR) / "imports" / f"bad-lines-{job_id}.csv"


@contextmanager
def open_writer(path: Path | None) -> Iterator[BadLineWriter]:
    """A file that is there afterwards where there was a bad line."""
    if path is None:
        yield _NullWriter()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    table = _CsvWriter(path)
    try:
        yield table
    finally:
        table.close()
