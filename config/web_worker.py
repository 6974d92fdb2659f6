"""The gunicorn worker of the web server. A slow client never occupies one of its threads.

The threads of gunicorn read requests and write responses themselves, so that as many idle sockets as threads would stop
the platform. Here the main thread receives a request before a thread sees it, and sends the part of a response that its
client has not received yet. Requests and responses that are larger than MAX_BUFFERED have threads of their own
("bulk"), so that uploads and downloads take none from raters; the application can still refuse an upload before it is
read. Everything has a time limit.

waitress receives requests in its main thread as well, but stores all of an upload before the application sees it.
"""

import math
import queue
import re
import selectors
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from gunicorn import http
from gunicorn.http import errors, wsgi
from gunicorn.workers.gthread import TConn, ThreadWorker

from config import env, problems
from config.client_sockets import MAX_HEAD, PIECE, ClientSocket, HeadTooLarge, Rates, measure_request

MAX_BUFFERED_RESPONSE = 1024 * 1024
# Seconds within which a client must send a head, send a buffered body, and take a buffered response.
HEAD_SECONDS = 10.0
BODY_SECONDS = 20.0
RESPONSE_SECONDS = 30.0
# The master kills a worker whose heartbeat is missing for a minute. Between two, an idle worker sleeps.
HEARTBEAT_SECONDS = 10.0
# A client may see a refusal only after it has sent its body, so some of that is received and dropped.
DISCARD_SECONDS = 10.0
MAX_DISCARDED = 8 * 1024 * 1024
MAX_DISCARDED_PER_SECOND = 4 * 1024 * 1024  # of all clients: it takes processor time from people at work

_STATUS_OF_ERROR: dict[type[BaseException], bytes] = {
    errors.LimitRequestLine: b"414 URI Too Long",
    errors.LimitRequestHeaders: b"431 Request Header Fields Too Large",
    errors.ExpectationFailed: b"417 Expectation Failed",
    errors.UnsupportedTransferCoding: b"501 Not Implemented",
    errors.InvalidResponseHeader: b"500 Internal Server Error",
    errors.InvalidResponseHeaderName: b"500 Internal Server Error",
    errors.ConfigurationProblem: b"500 Internal Server Error",
    errors.ParseException: b"400 Bad Request",
    ssl.SSLError: b"400 Bad Request",
}
_FORWARDED = re.compile(rb"\r\nx-forwarded-for:([^\r\n]*)\r\n", re.IGNORECASE)
_GO_ON_IN_BULK = object()
_Answer = Callable[[], Callable[[], None]]  # answers a request, and returns what reports that


def _refusal(status: bytes, message: str) -> bytes:
    """Return a response that the application does not see. `status` may end with further headers."""
    body = problems.encode_problem(int(status[:3]), message)
    head = (
        b"HTTP/1.1 %b\r\nContent-Type: application/problem+json\r\nContent-Length: %d\r\nCache-Control: no-store\r\n"
        b"X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )
    return head % (status, len(body)) + body


class Connection(TConn):  # type: ignore[misc]  # gunicorn ships no types
    parser: Any
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


class WarmThreads:
    """Threads of which the one that became idle last gets the next request.

    Each thread has a database connection, whose server process plans statements and caches tables for itself. The
    threads of `concurrent.futures` take turns, so that each request would find all of that in no processor cache."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._idle: list[queue.SimpleQueue[_Answer | None]] = []
        self._waiting: deque[_Answer] = deque()
        self._is_over = False
        self._lock = threading.RLock()  # a signal may end the worker while its main thread has the lock

    def submit(self, act: Callable[[Connection], Any], conn: Connection) -> "Future[Any]":
        future: Future[Any] = Future()

        def answer() -> Callable[[], None]:
            try:
                return partial(future.set_result, act(conn))
            except BaseException as error:  # noqa: BLE001  the future has it
                return partial(future.set_exception, error)

        with self._lock:
            if self._idle:
                self._idle.pop().put(answer)
            elif self._count < self._most:
                self._count += 1
                threading.Thread(target=self._answer_requests, args=[answer], name=f"web-{self._count}").start()
            else:
                self._waiting.append(answer)
        return future

    def _answer_requests(self, answer: _Answer | None) -> None:
        requests: queue.SimpleQueue[_Answer | None] = queue.SimpleQueue()
        while answer is not None:
            report = answer()
            with self._lock:  # before the report, which may bring the next request
                if self._waiting:
                    requests.put(self._waiting.popleft())
                elif self._is_over:
                    requests.put(None)
                else:
                    self._idle.append(requests)
            report()
            del answer, report  # an idle thread keeps no request
            answer = requests.get()

    def shutdown(self, *, wait: bool = False) -> None:
        """End the threads, each after its request. Requests that wait for a thread are still answered."""
        with self._lock:
            self._is_over = True
            for requests in self._idle:
                requests.put(None)
            self._idle.clear()


class BufferedWorker(ThreadWorker):  # type: ignore[misc]  # as above
    """A connection is received by the main thread, answered by a thread, sent by the main thread, and so on."""

    wsgi: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.waiting: dict[Connection, None] = {}  # connections in the poller, in the order in which they began to wait
        self.first_end = math.inf  # no connection in `waiting` has waited for too long before this time
        self.throttled: list[Connection] = []
        self.in_bulk: set[Connection] = set()
        self.bulk = ThreadPoolExecutor(env.read_int("STEPMARK_WEB_BULK_THREADS", default=4, least=1))
        self.proxies = env.read_int("STEPMARK_PROXIES", default=0)
        self.rates = Rates()
        self.discarded = 0
        self.discarding_since = 0.0

    def get_thread_pool(self) -> WarmThreads:
        return WarmThreads(self.cfg.threads)

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
            self._limit_wait(conn, time.monotonic() + HEAD_SECONDS)
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
                conn.has_head = True
                self._limit_wait(conn, time.monotonic() + BODY_SECONDS)
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

    def _submit(
        self, pool: "ThreadPoolExecutor | WarmThreads", act: Callable[[Connection], Any], conn: Connection
    ) -> None:
        if pool is self.bulk:
            self.in_bulk.add(conn)
        future = pool.submit(act, conn)
        future.add_done_callback(lambda done: self.method_queue.defer(self.finish_request, conn, done))

    # --- answer it, in a thread ---------------------------------------------------------------------------------

    def load_wsgi(self) -> None:
        super().load_wsgi()
        application: Any = self.wsgi

        def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            body: Iterable[bytes] = application(environ, start_response)
            response, client = start_response.__self__, environ["gunicorn.socket"]
            length = response.response_length
            is_small = response._omits_body or (length is not None and length <= MAX_BUFFERED_RESPONSE)
            if client.is_bulk or is_small:
                return body
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

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answer a malformed request, or an error of the server, as a problem document."""
        status = next((code for kind, code in _STATUS_OF_ERROR.items() if isinstance(exc, kind)), None)
        if status is None:
            self.log.exception("Error handling a request")
        with suppress(OSError):
            client.sendall(_refusal(status or b"500 Internal Server Error", ""))

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
        try:
            conn.sock.send_now(_refusal(status, message))
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
        self._limit_wait(conn, time.monotonic() + seconds)
        self.waiting[conn] = None
        # An earlier event of the same turn may have closed the connection.
        self.poller.register(conn.sock, event, lambda _fileobj: act() if conn in self.waiting else None)

    def _limit_wait(self, conn: Connection, ends_at: float) -> None:
        conn.ends_at = ends_at
        self.first_end = min(self.first_end, ends_at)

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
            piece = conn.sock.raw.recv(PIECE)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            piece = b""
        if not piece:
            self._drop(conn)
            return None
        return piece

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """Wait until something happens, until a connection has waited for too long, or for the next heartbeat."""
        if self.throttled:
            timeout = min(timeout, 1.0)
        elif self.alive:
            timeout = max(0.0, min(HEARTBEAT_SECONDS, self.first_end - time.monotonic()))
        super().wait_for_and_dispatch_events(timeout)
        if self.throttled and time.monotonic() - self.discarding_since >= 1:
            throttled, self.throttled = self.throttled, []
            for conn in throttled:
                self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._discard_more, conn))

    def murder_keepalived(self, force: bool = False) -> None:
        """Close connections that waited for too long; all of them with `force`."""
        now = time.monotonic()
        if now < self.first_end and not force:
            return
        for conn in [conn for conn in self.waiting if force or conn.ends_at <= now]:
            self._drop(conn)
        self.first_end = min((conn.ends_at for conn in self.waiting), default=math.inf)

    def _cap_keepalive(self, deadline: float) -> None:
        for conn in self.waiting:
            self._limit_wait(conn, min(conn.ends_at, deadline))

    def run(self) -> None:
        try:
            super().run()
        finally:  # also after an error: Python waits for idle threads at its end
            self.tpool.shutdown()
        self.bulk.shutdown(wait=False, cancel_futures=True)
        for conn in self.in_bulk:  # wakes their threads
            conn.close()
