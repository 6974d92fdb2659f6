"""Cuts a stream of bytes into lines, in bounded memory however long a line is."""

from collections.abc import Iterator
from typing import BinaryIO

from formats.records import BadLine

LINE_LIMIT = 32 * 1024 * 1024
_PIECE = 1 << 16
_MARK = b"\xef\xbb\xbf"  # the byte order mark that some editors put first; it is no part of the data


def read_head(stream: BinaryIO, *, limit: int = 1 << 16) -> tuple[int, bytes]:
    """The beginning of the first line that is not blank, and its number: enough to see what kind of file this is."""
    number = 1
    line = stream.readline(limit).removeprefix(_MARK)
    while line and not line.strip():
        number += line.endswith(b"\n")
        line = stream.readline(limit)
    return number, line


def read_lines(
    stream: BinaryIO, *, limit: int = LINE_LIMIT, begun: tuple[int, bytes] = (1, b"")
) -> Iterator[tuple[int, bytes] | BadLine]:
    """Each line that is not blank with its number, without the line feed that ends it. What of the first line was read
    already comes as `begun`."""
    first, beginning = begun
    number = first - 1
    while line := _line(stream, beginning, limit):
        beginning = b""
        number += 1
        if number == 1:
            line = line.removeprefix(_MARK)
        if len(line) > limit and not line.endswith(b"\n"):
            del line  # as long as a line may be: its rest is read beside nothing
            _skip_rest(stream)
            yield BadLine(number, limit + 1, f"the line is longer than {limit:,} bytes: split the record or the file")
        elif line.strip():
            yield number, line.removesuffix(b"\n")


def _line(stream: BinaryIO, beginning: bytes, limit: int) -> bytes:
    if beginning.endswith(b"\n") or len(beginning) > limit:
        return beginning
    return beginning + stream.readline(limit + 1 - len(beginning))


def _skip_rest(stream: BinaryIO) -> None:
    while (piece := stream.readline(_PIECE)) and not piece.endswith(b"\n"):
        pass
