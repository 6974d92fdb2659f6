"""The reference proxy speaks TLS, buffers messages, forwards uploads, and refuses large requests."""

import contextlib
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.hashers import Argon2PasswordHasher

from tests import factories, servers

pytestmark = pytest.mark.fault

CADDY = Path(sys.executable).with_name("caddy")
MESSAGE_LIMIT = 33_000_000
LOGIN, PASSWORD = "anna", "seven green ladders"


def find_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextlib.contextmanager
def running_proxy(folder: Path, port: int, upstream: str) -> Iterator[int]:
    """Run the project's Caddyfile, with other ports and without changing this machine's trusted certificates.

    Yields the port for requests without TLS."""
    plain, log = find_port(), folder / "caddy.log"
    env = {**os.environ, "STEPMARK_ORIGIN": f"https://localhost:{port}", "STEPMARK_UPSTREAM": upstream}
    env |= {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    command = [str(CADDY), "adapt", "--config", "Caddyfile", "--adapter", "caddyfile"]
    adapted = subprocess.run(command, cwd=servers.ROOT, env=env, capture_output=True, check=True)
    config: dict[str, Any] = json.loads(adapted.stdout)
    config["admin"] = {"disabled": True}
    config["apps"]["http"]["http_port"] = plain
    config["apps"]["http"]["servers"]["srv0"]["protocols"] = ["h1", "h2"]
    config["apps"]["pki"] = {"certificate_authorities": {"local": {"install_trust": False}}}
    (folder / "caddy.json").write_text(json.dumps(config))
    server = servers.ServerProcess(CADDY, "run", "--config", folder / "caddy.json", env=env, log=log)
    try:
        servers.wait_until(lambda: is_speaking_tls(port), what="the proxy")
        yield plain
    finally:
        server.kill()


def unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def connect(port: int) -> ssl.SSLSocket:
    return unverified().wrap_socket(socket.create_connection(("127.0.0.1", port), 20), server_hostname="localhost")


def is_speaking_tls(port: int) -> bool:
    with contextlib.suppress(OSError), connect(port):
        return True
    return False


@pytest.mark.usefixtures("real_connections")
def test_reference_proxy_works(tmp_path: Path, broker: str) -> None:
    user = factories.make_user(LOGIN)
    user.password = Argon2PasswordHasher().encode(PASSWORD, "salt-for-this-test")
    user.save()
    port, log = find_port(), tmp_path / "web.log"
    env = servers.process_environment(tmp_path, broker=broker)
    env |= {
        "SECRET_KEY": "a1b2c3d4e5f6g7h8i9j0" * 3,
        "STEPMARK_PROXIES": "1",
        "STEPMARK_ORIGIN": f"https://localhost:{port}",
        "STEPMARK_SUPERVISOR": "1",
    }
    web = servers.start_web_server(bind="127.0.0.1:0", env=env, log=log, is_forked=False)
    try:
        servers.wait_until(lambda: web.says("Booting worker"), what="the web server")
        (upstream,) = re.findall(r"Listening at: http://(127.0.0.1:\d+)", log.read_text())
        with running_proxy(tmp_path, port, upstream) as plain:
            check_platform(port, plain)
    finally:
        web.kill()


def check_platform(port: int, plain: int) -> None:
    with connect(port) as line:
        assert line.version() in {"TLSv1.2", "TLSv1.3"}
    secure = HTTPSConnection("localhost", port, timeout=60, context=unverified())
    secure.request("GET", "/api/schema", headers={"X-Forwarded-Proto": "http"})  # a forged one is replaced
    response = secure.getresponse()
    response.read()
    assert response.status == 200
    assert int(re.findall(r"max-age=(\d+)", response.headers["Strict-Transport-Security"])[0]) >= 31_536_000
    check_cookies(secure)
    secure.close()
    insecure = HTTPConnection("localhost", plain, timeout=60)
    insecure.request("GET", "/", headers={"Host": "localhost"})
    redirect = insecure.getresponse()
    assert redirect.status == 308
    assert redirect.headers["Location"].startswith("https://localhost")
    insecure.close()


def check_cookies(line: HTTPSConnection) -> None:
    """Log in, and check that browsers bind each cookie to this host and to TLS."""
    line.request("GET", "/accounts/login/")
    response = line.getresponse()
    (hidden,) = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', response.read().decode())[:1]
    token = SimpleCookie(response.headers["Set-Cookie"])["__Host-csrftoken"]
    form = urlencode({"csrfmiddlewaretoken": hidden, "login": LOGIN, "password": PASSWORD})
    headers = {"Cookie": f"{token.key}={token.value}", "Origin": f"https://localhost:{line.port}"}
    headers["Content-Type"] = "application/x-www-form-urlencoded"
    line.request("POST", "/accounts/login/", form, headers)
    response = line.getresponse()
    response.read()
    assert response.status == 302
    sent = [SimpleCookie(each) for each in response.headers.get_all("Set-Cookie", [])]
    cookies = [token, *(each for cookie in sent for each in cookie.values() if each.value)]
    session = next(each for each in cookies if each.key == "__Host-sessionid")
    assert session["httponly"]
    for each in cookies:
        assert each.key.startswith("__Host-")
        assert (bool(each["secure"]), each["path"], each["domain"], each["samesite"]) == (True, "/", "", "Lax")


class RecordingServer:
    """An HTTP server that records when bytes arrive."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.received = bytearray()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                line, _ = self.listener.accept()
                threading.Thread(target=self.receive, args=(line,), daemon=True).start()

    def receive(self, line: socket.socket) -> None:
        with line, contextlib.suppress(OSError):
            while piece := line.recv(65536):
                self.received += piece
                if self.received.endswith(b"END"):
                    line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


@pytest.fixture
def upstream() -> Iterator[RecordingServer]:
    server = RecordingServer()
    yield server
    server.listener.close()


def test_messages_are_forwarded_once_they_are_complete(tmp_path: Path, upstream: RecordingServer) -> None:
    port = find_port()
    with running_proxy(tmp_path, port, f"127.0.0.1:{upstream.port}"):
        for path, is_buffered in (("/messages/read", True), ("/projects/sums/imports/upload", False)):
            upstream.received.clear()
            with connect(port) as line:
                head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20003\r\n\r\n"
                line.sendall(head.encode() + b"x" * 10_000)
                if is_buffered:
                    time.sleep(1)  # nothing happens in this time, and nothing can be waited for
                    assert not upstream.received
                else:
                    servers.wait_until(lambda: b"xxx" in upstream.received, what="the first part of the upload")
                line.sendall(b"x" * 10_000 + b"END")
                assert line.recv(100).startswith(b"HTTP/1.1 200")


def test_large_requests_are_refused_by_the_proxy(tmp_path: Path, upstream: RecordingServer) -> None:
    port = find_port()
    with running_proxy(tmp_path, port, f"127.0.0.1:{upstream.port}"):
        assert ask(port, "/accounts/login/", {"Content-Length": str(MESSAGE_LIMIT + 1)}) == 413
        assert ask(port, "/accounts/login/", {"X-Long": "x" * 60_000}) == 431
    assert b"X-Long" not in upstream.received


def ask(port: int, path: str, headers: dict[str, str]) -> int:
    line = HTTPSConnection("localhost", port, timeout=60, context=unverified())
    try:
        line.putrequest("POST", path)
        for name, value in headers.items():
            line.putheader(name, value)
        line.endheaders()
        with contextlib.suppress(OSError, HTTPException):
            for _ in range(MESSAGE_LIMIT // 65536 + 2 if "Content-Length" in headers else 0):
                line.send(bytes(65536))
        return line.getresponse().status
    finally:
        line.close()
