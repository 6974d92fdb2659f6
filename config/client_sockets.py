"""The sockets of clients, the size that a request head announces, and the number of large requests per address.

See config/web_worker.py."""

import errno
import os
import re
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

MAX_HEAD = 32 * 1024
MAX_BUFFERED = 128 * 1024  # bytes of a body that the main thread receives
# A bulk thread gives up on a client that sends or receives nothing for this long, or less than MIN_RATE bytes a second.
STALLED_SECONDS = 15.0
MIN_RATE = 1024
# A body of unknown length may come from a program that is still making it. Only imports by the API read such bodies.
STREAM_STALLED_SECONDS = 120.0
# Bulk requests of one address: after a burst, this many a second.
BULK_RATE = 10.0
BULK_BURST = 100.0

PIECE = 64 * 1024
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r\n", re.IGNORECASE)
_UNKNOWN_LENGTH = re.compile(rb"\r\n(?:transfer-encoding|expect)[ \t]*:", re.IGNORECASE)


class Demand(NamedTuple):
    """The size of a request that its head announces, or None if only reading the request can tell."""

    size: int | None
    is_bulk: bool


class HeadTooLarge(Exception):
    """The head of a request has no end within MAX_HEAD bytes."""


def measure_request(received: bytearray) -> Demand | None:
    """Return the size that the head of the request announces, or None while the head is incomplete.

    gunicorn parses and checks the request later. A head that is unusual in any way goes to a bulk thread.
    """
    end = received.find(b"\r\n\r\n", 0, MAX_HEAD)
    if end < 0:
        if len(received) >= MAX_HEAD:
            raise HeadTooLarge
        return None
    head = bytes(received[: end + 2])
    if _UNKNOWN_LENGTH.search(head):
        return Demand(None, is_bulk=True)
    mentions = head.lower().count(b"\r\ncontent-length")
    announced = _LENGTH.search(head)
    if mentions != (announced is not None):
        return Demand(None, is_bulk=True)
    length = int(announced[1]) if announced else 0
    return Demand(end + 4 + length, is_bulk=length > MAX_BUFFERED)


class ClientSocket:
    """The socket of a client, as gunicorn's parser and response use it.

    An ordinary thread reads what was received and never waits. A bulk thread waits, but not for a client that stalls.
    """

    def __init__(self, raw: socket.socket) -> None:
        raw.setblocking(False)
        self.raw = raw
        self.received = bytearray()
        self.unsent = bytearray()
        self.left: int | None = 0  # bytes of the current request that its thread has not taken, None if unknown
        self.is_bulk = False
        self.is_cut = False  # the client sent something that no one will read
        self._began = 0.0
        self._transferred = 0

    def begin_request(self, demand: Demand) -> None:
        self.left, self.is_bulk, self.is_cut = demand.size, demand.is_bulk, demand.is_bulk
        if self.is_bulk:
            self.begin_bulk(STALLED_SECONDS if demand.size is not None else STREAM_STALLED_SECONDS)

    def begin_bulk(self, seconds: float = STALLED_SECONDS) -> None:
        self.is_bulk = True
        self._began, self._transferred = time.monotonic(), 0
        self.raw.settimeout(seconds)

    def end_request(self) -> None:
        self.is_bulk = False
        self.raw.setblocking(False)

    def recv(self, size: int) -> bytes:
        size = size if self.left is None else min(size, self.left)
        if size and not self.received:
            self.received += self._wait_for(lambda: self.raw.recv(size))
        piece = bytes(self.received[:size])
        del self.received[:size]
        if self.left is not None:
            self.left -= len(piece)
        return piece

    def sendall(self, data: bytes) -> None:
        if self.is_bulk:
            for begin in range(0, len(data), PIECE):
                piece = data[begin : begin + PIECE]
                self._wait_for(partial(self._send_all_now, piece))
        elif self.unsent:
            self.unsent += data
        else:
            sent = self.send_now(data)
            if sent < len(data):
                self.unsent += data[sent:]

    send = sendall

    def sendfile(self, file: Any, offset: int = 0, count: int | None = None) -> None:
        file.seek(offset)
        left = os.fstat(file.fileno()).st_size - offset if count is None else count
        while left > 0 and (piece := file.read(min(left, PIECE))):
            left -= len(piece)
            self.sendall(piece)

    def send_now(self, data: bytes | bytearray) -> int:
        """Send without waiting. Return the number of bytes sent."""
        try:
            return self.raw.send(data)
        except (BlockingIOError, InterruptedError):
            return 0

    def _send_all_now(self, piece: bytes) -> bytes:
        self.raw.sendall(piece)
        return piece

    def _wait_for(self, transfer: Callable[[], bytes]) -> bytes:
        """Run a transfer that may wait. Raises ConnectionResetError if the client stalls."""
        if not self.is_bulk:
            raise ConnectionResetError(errno.ECONNRESET, "the request is longer than its headers declare")
        try:
            piece = transfer()
        except TimeoutError as error:
            raise ConnectionResetError(errno.ECONNRESET, "the client stalled") from error
        self._transferred += len(piece)
        seconds = time.monotonic() - self._began - STALLED_SECONDS
        if self.left is not None and self._transferred < seconds * MIN_RATE:
            raise ConnectionResetError(errno.ECONNRESET, "the client is too slow")
        return piece

    def fileno(self) -> int:
        return self.raw.fileno()

    def gettimeout(self) -> float:
        return 0.0  # writing an error does not wait

    def setblocking(self, is_blocking: bool) -> None:
        """Do nothing: gunicorn's threads set it, but how to wait depends on the request."""

    def shutdown(self, how: int) -> None:
        self.raw.shutdown(how)

    def close(self) -> None:
        self.raw.close()


class Rates:
    """Count bulk requests of each address. They are refused before the application sees them."""

    def __init__(self) -> None:
        self._tokens: dict[str, tuple[float, float]] = {}

    def take(self, address: str, now: float) -> bool:
        if len(self._tokens) > 10_000:
            self._tokens.clear()
        tokens, since = self._tokens.get(address, (BULK_BURST, now))
        tokens = min(BULK_BURST, tokens + (now - since) * BULK_RATE)
        self._tokens[address] = (tokens - 1 if tokens >= 1 else tokens, now)
        return tokens >= 1
