"""Open input files, compressed or not, with a limit on how much a small file may unpack to."""

import gzip
import hashlib
import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from formats import zip_archives

CSV = "csv"
PARQUET = "parquet"
# Text compresses to a tenth, one sentence repeated to a hundredth. A higher ratio is not data.
RATIO_LIMIT = 300
_PACKED_PIECE = 1024
FREE_BYTES = 64 * 1024 * 1024  # any file may unpack to this size

_OTHER_PACKINGS = {
    b"\x1f\x8b": "gzip data: unpack the file, or end its name in .gz",
    b"\x28\xb5\x2f\xfd": "zstd data: unpack the file, or end its name in .zst",
    b"PK\x03\x04": "a ZIP archive or an office document: end the file name in .zip, or save the document as CSV",
    b"PAR1": "Parquet data: end the file name in .parquet",
}


class UnreadableFile(Exception):
    """The file is missing or damaged, or unpacks to too much."""


def open_file(path: Path, *, free: int = FREE_BYTES) -> BinaryIO:
    """Open the file for reading, unpacked if its name ends in .gz or .zst. Of a .zip, open the file of records."""
    raw = _open(path)
    if path.suffix.lower() == zip_archives.SUFFIX:
        return _open_zipped(raw, path, free)
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
            raise UnreadableFile(f"{path}: not a file")  # a pipe or a device may never end
        return path.open("rb")
    except (OSError, ValueError) as error:
        raise UnreadableFile(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _open_zipped(raw: io.BufferedReader, path: Path, free: int) -> BinaryIO:
    try:
        archive = zip_archives.open_archive(path, raw)
        info = zip_archives.find_records(archive, path)
        member = cast(BinaryIO, archive.open(info))
    except (zip_archives.UnusableArchive, *zip_archives.MEMBER_ERRORS) as error:
        raw.close()
        raise UnreadableFile(str(error)) from error
    return io.BufferedReader(_Bounded(member, raw, path, free + RATIO_LIMIT * info.compress_size))


def _refuse_other_packing(stream: io.BufferedReader, path: Path) -> None:
    """Raise if the content is compressed or packed in a way that the file name does not say."""
    beginning = stream.peek(4)[:4]
    for mark, advice in _OTHER_PACKINGS.items():
        if beginning.startswith(mark) and not (mark == b"PAR1" and path.suffix.lower() == ".parquet"):
            raise UnreadableFile(f"{path}: {advice}")


def unpacked_name(path: Path) -> str:
    """Return the file name without .gz or .zst, or the name of the file of records in a .zip."""
    if path.suffix.lower() == zip_archives.SUFFIX:
        try:
            with zip_archives.open_archive(path) as archive:
                return zip_archives.find_records(archive, path).filename.rpartition("/")[2]
        except zip_archives.UnusableArchive as error:
            raise UnreadableFile(str(error)) from error
    return path.stem if path.suffix in {".gz", ".zst"} else path.name


def detect_table_kind(path: Path) -> str | None:
    """Return "csv" or "parquet" if the file name, unpacked, has that ending."""
    ending = unpacked_name(path).rpartition(".")[2].lower()
    return ending if ending in {CSV, PARQUET} else None


def hash_file(path: Path) -> str:
    with _open(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class FileWatch:
    """Detect changes of a file. The content is hashed again only if the inode, size or times changed."""

    def __init__(self, path: Path, sha256: str) -> None:
        self._path = path
        self._sha256 = sha256
        self._verified_state: tuple[int, ...] | None = None

    def is_same(self) -> bool:
        """Tell whether the file still has the expected content. Call it after a read to know that the read is valid."""
        try:
            stat = self._path.stat()
        except OSError:
            return False
        state = stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns  # no program can set the ctime
        if state != self._verified_state:
            self._verified_state = state if hash_file(self._path) == self._sha256 else None
        return state == self._verified_state


def read_position(stream: BinaryIO) -> int:
    """Return the position in the file on disk, compressed or not."""
    raw = cast(io.BufferedReader, stream).raw
    return raw.position() if isinstance(raw, _Bounded) else raw.tell()


class _Zstd:
    """A reader of consecutive zstd frames. The library's own reader does not detect a truncated file.

    Input is fed in small pieces, because a few bytes may unpack to a hundred thousand. Windows are limited to 128 MB.
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
                    raise EOFError("the compressed data is truncated")
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
    """An unpacked stream that raises once it is longer than its limit."""

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
        except (OSError, EOFError, zstandard.ZstdError, zipfile.BadZipFile, zlib.error) as error:
            raise UnreadableFile(f"{self._path}: damaged: {error}") from error
        self._left -= len(piece)
        if self._left < 0:
            raise UnreadableFile(f"{self._path}: unpacks to more than {RATIO_LIMIT} times its size: unpack it first")
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._stream.close()
        self._raw.close()
        super().close()
