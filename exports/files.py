"""Write the files of a snapshot. A file has a temporary name until it is complete, and its checksum is computed while
it is written."""

import gzip
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import zstandard
from msgspec import Struct

from formats.columns import OutputRow

_LEVEL = 6


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
        self._unfinished = path.with_name(path.name + ".unfinished")
        path.parent.mkdir(parents=True, exist_ok=True)
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


def _compress(data: bytes, ending: str) -> bytes:
    if ending.endswith(".gz"):
        return gzip.compress(data, _LEVEL, mtime=0)
    if ending.endswith(".zst"):
        return zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True).compress(data)
    return data


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_text(path: Path, text: str) -> WrittenFile:
    """Write a small file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
    return WrittenFile(path.name, 0, path.stat().st_size, file_sha256(path))


def write_json(path: Path, content: Any) -> WrittenFile:
    return write_text(path, json.dumps(content, indent=2, sort_keys=True) + "\n")
