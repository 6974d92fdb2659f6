"""Opens files that come in, packed or not, without being drowned by a small file that unpacks to a huge one."""

import gzip
import hashlib
import io
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

# Text packs to a tenth, a file made of one sentence to a hundredth. Beyond that it is no data.
RATIO_LIMIT = 300
FREE = 64 * 1024 * 1024  # however small the file, so much may come of it


class Unreadable(Exception):
    """The file is not there, is damaged, or unpacks to more than any honest file."""


def open_file(path: Path, *, free: int = FREE) -> BinaryIO:
    """The bytes in the file, unpacked where its name ends in .gz or .zst."""
    try:
        raw = path.open("rb")
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}") from error
    if path.suffix not in {".gz", ".zst"}:
        return raw
    limit = free + RATIO_LIMIT * path.stat().st_size
    unpacked = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else _unzstd(raw)
    return io.BufferedReader(_Bounded(cast(BinaryIO, unpacked), raw, path, limit))


def inner_name(path: Path) -> str:
    """The file's name without the suffix of its packing."""
    return path.stem if path.suffix in {".gz", ".zst"} else path.name


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unzstd(raw: BinaryIO) -> BinaryIO:
    """A window of 128 MB at most: one that asks for gigabytes is refused."""
    reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(raw, read_across_frames=True)
    return cast(BinaryIO, reader)


class _Bounded(io.RawIOBase):
    """A stream that ends with an error where it should have ended long before."""

    def __init__(self, stream: BinaryIO, raw: BinaryIO, path: Path, limit: int) -> None:
        self._stream = stream
        self._raw = raw
        self._path = path
        self._left = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # the stubs ask for a type of 3.12
        try:
            piece = self._stream.read(len(buffer))
        except (OSError, EOFError, zstandard.ZstdError) as error:
            raise Unreadable(f"{self._path}: damaged: {error}") from error
        self._left -= len(piece)
        if self._left < 0:
            raise Unreadable(f"{self._path}: unpacks to more than {RATIO_LIMIT} times its size: unpack it yourself")
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._stream.close()
        self._raw.close()
        super().close()
