"""The gunicorn worker of the web server, in which no slow client holds a thread.

The threads of gunicorn read requests and write responses themselves, so that as many idle sockets as threads would stop
the platform. Here the main thread receives a request before a thread sees it, and sends what its client has not taken
yet. Requests and responses that are larger than MAX_BUFFERED have threads of their own ("bulk"), so that uploads and
downloads take none from raters; the application can still refuse an upload before it is read. Everything has a time
limit.

waitress receives requests in its main thread as well, but stores all of an upload before the application sees it.
"""

import errno
import os
import re
import selectors
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

from gunicorn import http
from gunicorn.http import wsgi
from gunicorn.workers.gthread import TConn, ThreadWorker

from config import env

MAX_HEAD = 32 * 1024
MAX_BUFFERED = 128 * 1024  # bytes of a body that the main thread receives
MAX_BUFFERED_RESPONSE = 1024 * 1024
# Seconds within which a client must send a head, send a buffered body, and take a buffered response.
HEAD_SECONDS = 10.0
BODY_SECONDS = 20.0
RESPONSE_SECONDS = 30.0
# A bulk thread gives up on a client that sends or takes nothing for this long, or less than MIN_RATE bytes a second.
STALLED_SECONDS = 15.0
MIN_RATE = 1024
# A body of unknown length may come from a program that is still making it. Only imports by the API read such bodies.
STREAM_STALLED_SECONDS = 120.0
# A client may see a refusal only after it has sent its body, so some of that is received and dropped.
DISCARD_SECONDS = 10.0
MAX_DISCARDED = 16 * 1024 * 1024
MAX_DISCARDED_PER_SECOND = 64 * 1024 * 1024  # of all clients
# Bulk requests of one address: after a burst, this many a second.
BULK_RATE = 10.0
BULK_BURST = 100.0

_PIECE = 64 * 1024
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r\n", re.IGNORECASE)
_UNKNOWN_LENGTH = re.compile(rb"\r\n(?:transfer-encoding|expect)[ \t]*:", re.IGNORECASE)
_FORWARDED = re.compile(rb"\r\nx-forwarded-for:([^\r\n]*)\r\n", re.IGNORECASE)
_GO_ON_IN_BULK = object()


class Demand(NamedTuple):
    """What a request head announces: the size of the request, or None if only reading it can tell."""

    size: int | None
    is_bulk: bool


class HeadTooLarge(Exception):
    """The head of a request has no end within MAX_HEAD bytes."""


def measure_request(received: bytearray) -> Demand | None:
    """Return what the request that begins here announces, or None while its head is incomplete.

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
        self.is_cut = False  # the client sent something that nobody reads
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
            for begin in range(0, len(data), _PIECE):
                piece = data[begin : begin + _PIECE]
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
        while left > 0 and (piece := file.read(min(left, _PIECE))):
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
            raise ConnectionResetError(errno.ECONNRESET, "the request is longer than its head announced")
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


class Connection(TConn):  # type: ignore[misc]  # gunicorn ships no types
    sock: ClientSocket
    initialized: bool
    data_ready: bool

    def __init__(self, cfg: Any, raw: socket.socket, client: Any, server: Any) -> None:
        super().__init__(cfg, ClientSocket(raw), client, server)
        self.data_ready = True  # a thread never waits for the beginning of a request
        self.ends_at = 0.0
        self.has_head = False
        self.discarded = 0
        self.large: LargeResponse | None = None

    def init(self) -> None:
        if not self.initialized:
            self.initialized = True
            self.parser = http.get_parser(self.cfg, self.sock, self.client)


class LargeResponse(Exception):
    """A response that a bulk thread sends."""

    def __init__(self, response: Any, body: Iterable[bytes]) -> None:
        self.response = response
        self.body = body


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


class BufferedWorker(ThreadWorker):  # type: ignore[misc]
    """A connection is received by the main thread, answered by a thread, sent by the main thread, and so on."""

    wsgi: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.waiting: dict[Connection, None] = {}  # connections in the poller, in the order in which they began to wait
        self.throttled: list[Connection] = []
        self.in_bulk: set[Connection] = set()
        self.bulk = ThreadPoolExecutor(env.read_int("STEPMARK_WEB_BULK_THREADS", default=4, least=1))
        self.proxies = env.read_int("STEPMARK_PROXIES", default=0)
        self.rates = Rates()
        self.discarded = 0
        self.discarding_since = 0.0

    # --- receive a request --------------------------------------------------------------------------------------

    def accept(self, listener: socket.socket) -> None:
        # When connections run short, the one that has waited longest makes room.
        if self.nr_conns >= self.worker_connections - 1 and self.waiting:
            self._drop(next(iter(self.waiting)))
        try:
            raw, client = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        self.nr_conns += 1
        conn = Connection(self.cfg, raw, client, listener.getsockname())
        self._wait(conn, selectors.EVENT_READ, partial(self._receive, conn), self.cfg.keepalive)

    def _receive(self, conn: Connection) -> None:
        piece = self._read_piece(conn)
        if piece is None:
            return
        if not conn.sock.received:  # the first bytes of a request
            conn.ends_at = time.monotonic() + HEAD_SECONDS
        conn.sock.received += piece
        self._dispatch(conn)

    def _dispatch(self, conn: Connection) -> None:
        """Give a request to a thread if enough of it has arrived."""
        client = conn.sock
        try:
            demand = measure_request(client.received)
        except HeadTooLarge:
            self._refuse(conn, b"431 Request Header Fields Too Large", "The request head is too large.")
            return
        if demand is None:
            return
        if not demand.is_bulk and demand.size is not None and len(client.received) < demand.size:
            if not conn.has_head:  # the body has a time of its own
                conn.has_head, conn.ends_at = True, time.monotonic() + BODY_SECONDS
            return
        conn.has_head = False
        if demand.is_bulk and not self.rates.take(self._address(conn), time.monotonic()):
            message = "Too many large uploads from this address. Wait ten seconds, then try again."
            self._refuse(conn, b"429 Too Many Requests\r\nRetry-After: 10", message)
            return
        self._stop_waiting(conn)
        client.begin_request(demand)
        self._submit(self.bulk if demand.is_bulk else self.tpool, self.handle, conn)

    def _address(self, conn: Connection) -> str:
        forwarded = _FORWARDED.search(conn.sock.received, 0, MAX_HEAD) if self.proxies else None
        hops = forwarded[1].decode(errors="replace").split(",") if forwarded else []
        if hops:
            return hops[-min(self.proxies, len(hops))].strip()
        return conn.client[0] if isinstance(conn.client, tuple) else ""

    def _submit(self, pool: ThreadPoolExecutor, act: Callable[[Connection], Any], conn: Connection) -> None:
        if pool is self.bulk:
            self.in_bulk.add(conn)
        future = pool.submit(act, conn)
        future.add_done_callback(lambda done: self.method_queue.defer(self.finish_request, conn, done))

    # --- answer it, in a thread ---------------------------------------------------------------------------------

    def load_wsgi(self) -> None:
        super().load_wsgi()
        application: Any = self.wsgi

        def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            body = application(environ, start_response)
            response, client = start_response.__self__, environ["gunicorn.socket"]
            length = response.response_length
            is_small = response._omits_body or (length is not None and length <= MAX_BUFFERED_RESPONSE)
            if client.is_bulk or is_small:
                return body  # type: ignore[no-any-return]
            raise LargeResponse(response, body)

        self.wsgi = answer

    def handle_request(self, req: Any, conn: Connection) -> Any:
        if conn.sock.is_bulk:
            req.force_close()
        try:
            return super().handle_request(req, conn)
        except LargeResponse as large:
            conn.large = large
            return _GO_ON_IN_BULK

    def _keepalive_after(self, conn: Connection, keepalive: Any) -> Any:
        return keepalive if keepalive is _GO_ON_IN_BULK else super()._keepalive_after(conn, keepalive)

    def _send_large(self, conn: Connection) -> bool:
        """Send a large response from a bulk thread, and close the connection."""
        large, conn.large = conn.large, None
        if large is None:
            return False
        try:
            conn.sock.begin_bulk()
            large.response.force_close()
            if isinstance(large.body, wsgi.FileWrapper):
                large.response.write_file(large.body)
            else:
                for item in large.body:
                    large.response.write(item)
            large.response.close()
        except OSError as error:
            self.log.debug("A client stopped taking its response: %s", error)
        except Exception:  # the application's own; the response has begun
            self.log.exception("Error sending a response")
        finally:
            getattr(large.body, "close", lambda: None)()
        return False

    # --- send what is left, in the main thread ------------------------------------------------------------------

    def finish_request(self, conn: Connection, done: "Future[Any]") -> None:
        self.in_bulk.discard(conn)
        result = None if done.cancelled() or done.exception() else done.result()
        if result is _GO_ON_IN_BULK:
            self._submit(self.bulk, self._send_large, conn)
            return
        conn.sock.end_request()
        if conn.sock.unsent:
            act = partial(self._send, conn, bool(result))
            self._wait(conn, selectors.EVENT_WRITE, act, RESPONSE_SECONDS)
        else:
            self._end(conn, is_kept=bool(result))

    def _send(self, conn: Connection, is_kept: bool) -> None:
        client = conn.sock
        try:
            del client.unsent[: client.send_now(client.unsent)]
        except OSError:
            self._drop(conn)
            return
        if not client.unsent:
            self._stop_waiting(conn)
            self._end(conn, is_kept=is_kept)

    def _end(self, conn: Connection, *, is_kept: bool) -> None:
        """Wait for the next request of the connection, or close it."""
        if is_kept:
            self._wait(conn, selectors.EVENT_READ, partial(self._receive, conn), self.cfg.keepalive)
            if conn.sock.received:  # a pipelined request, which does not make the socket readable
                self._dispatch(conn)
        elif conn.sock.is_cut:
            self._discard_rest(conn)
        else:
            self._close(conn)

    def _refuse(self, conn: Connection, status: bytes, message: str) -> None:
        """Answer from the main thread, and close the connection."""
        self._stop_waiting(conn)
        code = int(status[:3])
        body = f'{{"type": "about:blank", "status": {code}, "detail": "{message}"}}'.encode()
        head = (
            b"HTTP/1.1 %b\r\nContent-Type: application/problem+json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        )
        try:
            conn.sock.send_now(head % (status, len(body)) + body)
        except OSError:
            self._close(conn)
            return
        self._discard_rest(conn)

    def _discard_rest(self, conn: Connection) -> None:
        """Drop what the client still sends. Closing at once would reset the connection, and lose the response."""
        try:
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(conn)
            return
        conn.sock.received.clear()
        conn.discarded = 0
        self._wait(conn, selectors.EVENT_READ, partial(self._discard, conn), DISCARD_SECONDS)

    def _discard(self, conn: Connection) -> None:
        now = time.monotonic()
        if now - self.discarding_since >= 1:
            self.discarding_since, self.discarded = now, 0
        if self.discarded >= MAX_DISCARDED_PER_SECOND:
            self.poller.unregister(conn.sock)
            self.throttled.append(conn)
            return
        piece = self._read_piece(conn)
        if piece is None:
            return
        self.discarded += len(piece)
        conn.discarded += len(piece)
        if conn.discarded > MAX_DISCARDED:
            self._drop(conn)

    def _discard_more(self, conn: Connection, _fileobj: Any) -> None:
        if conn in self.waiting:
            self._discard(conn)

    # --- wait ---------------------------------------------------------------------------------------------------

    def _wait(self, conn: Connection, event: int, act: Callable[[], None], seconds: float) -> None:
        conn.ends_at = time.monotonic() + seconds
        self.waiting[conn] = None
        # An earlier event of the same turn may have closed the connection.
        self.poller.register(conn.sock, event, lambda _fileobj: act() if conn in self.waiting else None)

    def _stop_waiting(self, conn: Connection) -> None:
        del self.waiting[conn]
        if conn in self.throttled:
            self.throttled.remove(conn)
        else:
            self.poller.unregister(conn.sock)

    def _drop(self, conn: Connection) -> None:
        self._stop_waiting(conn)
        self._close(conn)

    def _close(self, conn: Connection) -> None:
        self.nr_conns -= 1
        conn.close()

    def _read_piece(self, conn: Connection) -> bytes | None:
        """Return what has arrived. Return None if nothing has, or the client is gone."""
        try:
            piece = conn.sock.raw.recv(_PIECE)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            piece = b""
        if not piece:
            self._drop(conn)
            return None
        return piece

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        super().wait_for_and_dispatch_events(timeout)
        if self.throttled and time.monotonic() - self.discarding_since >= 1:
            throttled, self.throttled = self.throttled, []
            for conn in throttled:
                self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._discard_more, conn))

    def murder_keepalived(self, force: bool = False) -> None:
        """Close connections that waited for too long; all of them with `force`."""
        for conn in list(self._overdue(force)):
            self._drop(conn)

    def _overdue(self, force: bool) -> Iterator[Connection]:
        now = time.monotonic()
        return (conn for conn in self.waiting if force or conn.ends_at <= now)

    def _cap_keepalive(self, deadline: float) -> None:
        for conn in self.waiting:
            conn.ends_at = min(conn.ends_at, deadline)

    def run(self) -> None:
        super().run()
        self.bulk.shutdown(wait=False, cancel_futures=True)
        for conn in self.in_bulk:  # wakes their threads
            conn.close()
