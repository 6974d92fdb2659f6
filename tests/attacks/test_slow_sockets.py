"""Clients that send or receive nothing do not occupy a thread of the web server."""

import contextlib
import json
import re
import socket
import sys
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPMessage
from typing import NamedTuple

import pytest

from config import client_sockets
from tests import servers

QUICK = 5.0  # seconds; the shortest time limit of the server is twice as long
GET = b"GET / HTTP/1.1\r\nHost: here\r\n"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A web server with two threads, and two for large requests."""
    command = [sys.executable, "-m", "gunicorn", "--config", "config/gunicorn.py", "--bind", "127.0.0.1:0"]
    env = {"STEPMARK_WEB_THREADS": "2", "STEPMARK_WEB_BULK_THREADS": "2"}
    log = tmp_path_factory.mktemp("web") / "log"
    server = servers.ServerProcess(*command, "tests.attacks.plain_application", env=env, log=log)
    try:
        servers.wait_until(lambda: server.says("Booting worker"), what="the web server")
        yield int(re.findall(r"Listening at: http://127.0.0.1:(\d+)", log.read_text())[0])
    finally:
        server.kill()


class Answer(NamedTuple):
    status: int
    headers: HTTPMessage
    body: bytes


def ask(port: int, method: str, path: str, body: bytes | None = None) -> Answer:
    with contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=QUICK)) as line:
        line.request(method, path, body)
        response = line.getresponse()
        return Answer(response.status, response.headers, response.read())


def connect(port: int, sent: bytes, *, address: str = "127.0.0.1") -> socket.socket:
    line = socket.socket()
    line.bind((address, 0))
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.settimeout(20)
    line.connect(("127.0.0.1", port))
    line.sendall(sent)
    return line


ATTACKS = {
    "nothing": b"",
    "head": GET,
    "body": b"POST /read HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\nabc",
    "large body": b"POST /read HTTP/1.1\r\nHost: here\r\nContent-Length: 9000000\r\n\r\nabc",
    "chunked body": b"POST /read HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
    "reading": b"GET /size/900000 HTTP/1.1\r\nHost: here\r\n\r\n",
    "reading much": b"GET /size/9000000 HTTP/1.1\r\nHost: here\r\n\r\n",
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_slow_sockets_hold_no_thread(port: int, attack: str) -> None:
    with contextlib.ExitStack() as lines:
        for _ in range(16):
            lines.enter_context(connect(port, ATTACKS[attack]))
        for _ in range(5):
            began = time.monotonic()
            assert ask(port, "POST", "/read", b"x" * 1000).body == b"1000"
            assert time.monotonic() - began < QUICK


def test_large_requests_have_threads_of_their_own(port: int) -> None:
    small, large = (ask(port, "POST", "/read", bytes(size)) for size in (1000, client_sockets.MAX_BUFFERED + 1))
    assert small.headers["Thread-Pool"] != large.headers["Thread-Pool"]
    assert large.headers["Connection"] == "close"


def test_response_to_a_refused_upload_arrives(port: int) -> None:
    """Closing the connection while the client still sends would lose the response."""
    response = ask(port, "POST", "/refuse", bytes(4_000_000))
    assert response.status == 413


def test_large_response_is_whole(port: int) -> None:
    for size in (900_000, 9_000_000):
        assert len(ask(port, "GET", f"/size/{size}").body) == size


def test_pipelined_requests_are_all_answered(port: int) -> None:
    post = b"POST /read HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\nabcd"
    with connect(port, GET + b"\r\n" + post + GET + b"Connection: close\r\n\r\n") as line:
        received = b"".join(iter(lambda: line.recv(65536), b""))
    assert received.count(b"HTTP/1.1 200 OK") == 3


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (GET + b"A: " + b"x" * 40_000, b"431"),
        (GET + b"Content-Length: x\r\n\r\n", b"400"),
        (GET + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", b"400"),
        (GET + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
        (GET + b" folded: x\r\n\r\n", b"400"),
    ],
)
def test_odd_head_is_refused(port: int, sent: bytes, status: bytes) -> None:
    with connect(port, sent) as line:
        head, _, body = b"".join(iter(lambda: line.recv(65536), b"")).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 " + status)
    assert b"application/problem+json" in head
    assert json.loads(body)["status"] == int(status)


@pytest.mark.fault
def test_slow_sockets_are_closed(port: int) -> None:
    """Every slow connection is closed, although the client sends a byte a second."""
    ends = time.monotonic() + 45
    with contextlib.ExitStack() as lines:
        attacks = ATTACKS.keys() - {"nothing", "chunked body"}  # these may be idle for longer
        is_open = {attack: lines.enter_context(connect(port, ATTACKS[attack])) for attack in attacks}
        while is_open and time.monotonic() < ends:
            time.sleep(1)
            for attack, line in list(is_open.items()):
                try:
                    line.sendall(b"x")
                except OSError:
                    del is_open[attack]
    assert not is_open


def test_upload_storm_of_an_address_is_refused_before_the_application(port: int) -> None:
    head = b"POST /refuse HTTP/1.1\r\nHost: here\r\nContent-Length: 900000000\r\n\r\n"
    statuses = set()
    for _ in range(int(client_sockets.BULK_BURST) + 50):
        with connect(port, head, address="127.0.0.2") as line:
            statuses.add(line.recv(100)[9:12])
    assert statuses == {b"413", b"429"}
    assert ask(port, "POST", "/refuse", bytes(client_sockets.MAX_BUFFERED + 1)).status == 413
