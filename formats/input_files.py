"""Opens files that come in, packed or not, without being drowned by a small file that unpacks to a huge one."""

import gzip
import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

# Text packs to a tenth, a file made of one sentence to a hundredth. Beyond that it is no data.
RATIO_LIMIT = 300
_PACKED_PIECE = 1024
FREE_BYTES = 64 * 1024 * 1024  # however small the file, so much may come of it

_OTHER_PACKINGS = {
    b"\x1f\x8b": "packed with gzip: unpack it, or let its name end in .gz, once",
    b"\x28\xb5\x2f\xfd": "packed with zstd: unpack it, or let its name end in .zst, once",
    b"PK\x03\x04": "a ZIP archive or an office document: unpack it, or save it as CSV",
    b"PAR1": "Parquet: let its name end in .parquet",
}


class UnreadableFile(Exception):
    """The file is not there, is damaged, or unpacks to more than any honest file."""


def open_file(path: Path, *, free: int = FREE_BYTES) -> BinaryIO:
    """The bytes in the file, unpacked where its name ends in .gz or .zst."""
    raw = _open(path)
    if path.suffix in {".gz", ".zst"}:
        limit = free + RATIO_LIMIT * path.stat().st_size
        unpacked = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else _Zstd(raw)
        raw = io.BufferedReader(_Bounded(cast(BinaryIO, unpacked), raw, path, limit))
    try:
        _refuse_other_packing(raw, path)
    except UnreadableFile:
        raw.close()
        raise
    return raw


def _open(path: Path) -> io.BufferedReader:
    try:
        if path.exists() and not path.is_file():
            raise UnreadableFile(f"{path}: not a file")  # a pipe or a device would never end
        return path.open("rb")
    except (OSError, ValueError) as error:
        raise UnreadableFile(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _refuse_other_packing(stream: io.BufferedReader, path: Path) -> None:
    """What begins like the packing of something else is told as that, and not as text that is none."""
    beginning = stream.peek(4)[:4]
    for mark, advice in _OTHER_PACKINGS.items():
        if beginning.startswith(mark) and not (mark == b"PAR1" and path.suffix.lower() == ".parquet"):
            raise UnreadableFile(f"{path}: {advice}")


def unpacked_name(path: Path) -> str:
    """The file's name without the suffix of its packing."""
    return path.stem if path.suffix in {".gz", ".zst"} else path.name


def hash_file(path: Path) -> str:
    with _open(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class FileWatch:
    """Whether a file is still the one that it was said to be. Read anew only where its entry in the folder changed."""

    def __init__(self, path: Path, sha256: str) -> None:
        self._path = path
        self._sha256 = sha256
        self._mark: tuple[int, ...] | None = None

    def is_same(self) -> bool:
        """Asked after something was read: what was read is of that file, if the answer is yes."""
        mark = _file_state(self._path)
        if mark is not None and mark != self._mark:
            self._mark = mark if hash_file(self._path) == self._sha256 else None
        return mark is not None and mark == self._mark


def _file_state(path: Path) -> tuple[int, ...] | None:
    """What no program can leave as it was: the time of the last change is the system's own. None where it is gone."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def read_position(stream: BinaryIO) -> int:
    """How far the file itself is read, packed or not."""
    raw = cast(io.BufferedReader, stream).raw
    return raw.position() if isinstance(raw, _Bounded) else raw.tell()


class _Zstd:
    """Frames one after the other. The library's own reader takes a file that was cut off for one that has ended.

    It is fed in small pieces, because a few bytes may unpack to a hundred thousand. A window has 128 MB at most: one
    that asks for gigabytes is refused.
    """

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._unpacker = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        self._frame = self._unpacker.decompressobj()
        self._is_inside = False
        self._ready = memoryview(b"")

    def read(self, size: int) -> memoryview:
        while not self._ready:
            packed = self._raw.read(_PACKED_PIECE)
            if not packed:
                if self._is_inside:
                    raise EOFError("the file ends in the middle of what was packed")
                break
            self._ready = memoryview(b"".join(self._unpacked(packed)))
        piece, self._ready = self._ready[:size], self._ready[size:]
        return piece

    def close(self) -> None:
        self._ready = memoryview(b"")

    def _unpacked(self, packed: bytes) -> Iterator[bytes]:
        while packed:
            self._is_inside = True
            yield self._frame.decompress(packed)
            packed = b""
            if self._frame.eof:
                packed = self._frame.unused_data
                self._frame, self._is_inside = self._unpacker.decompressobj(), False


class _Bounded(io.RawIOBase):
    """A stream that ends with an error where it should have ended long before."""

    def __init__(self, stream: BinaryIO, raw: BinaryIO, path: Path, limit: int) -> None:
        self._stream = stream
        self._raw = raw
        self._path = path
        self._left = limit

    def readable(self) -> bool:
        return True

    def position(self) -> int:
        return self._raw.tell()

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # the stubs ask for a type of 3.12
        try:
            piece = self._stream.read(len(buffer))
        except (OSError, EOFError, zstandard.ZstdError) as error:
            raise UnreadableFile(f"{self._path}: damaged: {error}") from error
        self._left -= len(piece)
        if self._left < 0:
            raise UnreadableFile(f"{self._path}: unpacks to more than {RATIO_LIMIT} times its size: unpack it yourself")
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._stream.close()
        self._raw.close()
        super().close()
