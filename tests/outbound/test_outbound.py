"""Requests leave the machine only to public or allowed addresses, and are bounded in time and size."""

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import outbound
from outbound import AddressRefused, RequestFailed


@contextmanager
def serving(answer: Callable[[socket.socket], object]) -> Iterator[tuple[int, list[bytes]]]:
    """Serve one connection: read the head of the request, then `answer`."""
    heads: list[bytes] = []

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            heads.append(connection.recv(65536))
            with suppress(OSError):  # the client has left
                answer(connection)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1], heads
        thread.join(10)


def send(address: str, *, timeout: float = 5, max_bytes: int = 1000) -> outbound.OutboundResponse:
    return outbound.post(address, b"{}", {"X-A": "b"}, timeout=timeout, max_bytes=max_bytes)


@pytest.mark.parametrize(
    "odd",
    [
        *("", "ftp://gpu", "http://", "http://[", "http://gpu:99999", "http://gpu:x", "http://a..b", "http://\u2100.x"),
        *(f"http://{'a' * 64}.x", "http://gpu/é", "http://gpu/a b", "http://gpu/\n", "http://me:x@gpu/"),
    ],
)
def test_address_without_a_valid_host_is_refused(odd: str) -> None:
    with pytest.raises(AddressRefused) as refused:
        outbound.check_address(odd)
    assert refused.value.code == "invalid"


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "0.0.0.0", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "100.100.100.200"),
        *("168.63.129.16", "224.0.0.1", "[::1]", "[fe80::1]", "[fd00:ec2::254]", "[::ffff:169.254.169.254]"),
        *("[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]", "[2002:7f00:1::]", "2130706433", "0x7f.1", "localhost"),
    ],
)
def test_address_that_is_not_public_is_refused(host: str, settings: Any) -> None:
    settings.OUTBOUND_HOSTS = []
    for call in (outbound.check_address, send):
        with pytest.raises(AddressRefused) as refused:
            call(f"http://{host}/")
        assert refused.value.code == "not_public"


@pytest.mark.parametrize("entry", ["127.0.0.1", "127.0.0.0/8", "localhost", "LOCALHOST"])
def test_operator_allows_hosts_addresses_and_networks(entry: str, settings: Any) -> None:
    settings.OUTBOUND_HOSTS = ["example.org", entry, "::1/128"]
    assert outbound.check_address("http://localhost/a?b=c")
    with pytest.raises(AddressRefused):
        outbound.check_address("http://10.0.0.1/")


@pytest.mark.parametrize("host", ["1.1.1.1", "[2606:4700::1111]", "[::ffff:1.1.1.1]"])
def test_public_address_is_accepted(host: str, settings: Any) -> None:
    settings.OUTBOUND_HOSTS = []
    assert outbound.check_address(f"https://{host}:8443/a")


def test_host_is_resolved_once_and_the_checked_address_is_called(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """A DNS server that answers a public address first and a private one later gets no second question."""
    settings.OUTBOUND_HOSTS = ["127.0.0.1"]
    resolve, asked = socket.getaddrinfo, []

    def answer(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        if host != "rebound.example":
            return resolve(host, port, *args, **options)
        asked.append(host)
        return resolve("127.0.0.1" if len(asked) == 1 else "10.0.0.1", port, *args, **options)

    monkeypatch.setattr("socket.getaddrinfo", answer)
    with serving(lambda connection: connection.sendall(b"HTTP/1.1 204 \r\n\r\n")) as (port, heads):
        assert send(f"http://rebound.example:{port}/hook?a=1").status == 204
    assert asked == ["rebound.example"]
    assert heads[0].startswith(b"POST /hook?a=1 HTTP/1.1\r\nHost: rebound.example:")


def test_redirect_is_not_followed_and_answer_is_cut() -> None:
    answer = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 5000\r\n\r\n" + b"x" * 5000
    with serving(lambda connection: connection.sendall(answer)) as (port, _heads):
        response = send(f"http://127.0.0.1:{port}/")
    assert (response.status, len(response.content), response.is_cut) == (302, 1000, True)


@pytest.mark.fault
def test_server_that_sends_byte_by_byte_is_cut_off() -> None:
    def drip(connection: socket.socket) -> None:
        for byte in b"HTTP/1.1 200 OK\r\n" * 50:
            connection.sendall(bytes([byte]))
            time.sleep(0.05)

    begun = time.monotonic()
    with serving(drip) as (port, _heads), pytest.raises(RequestFailed):
        send(f"http://127.0.0.1:{port}/", timeout=0.4)
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(("scheme", "answer"), [("https", b"no tls"), ("http", b"220 smtp\r\n")])
def test_server_without_tls_or_http_is_a_failed_request(scheme: str, answer: bytes) -> None:
    with serving(lambda connection: connection.sendall(answer)) as (port, _heads), pytest.raises(RequestFailed):
        send(f"{scheme}://127.0.0.1:{port}/")


@pytest.mark.fault
def test_tls_server_that_stays_silent_is_cut_off() -> None:
    with serving(lambda connection: connection.recv(100)) as (port, _heads), pytest.raises(RequestFailed):
        send(f"https://127.0.0.1:{port}/", timeout=0.3)


def test_certificate_of_another_host_is_refused(tmp_path: Path) -> None:
    """The connection is made to an address, and the certificate must be that of the host name."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    options = ["-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-days", "2", "-subj", "/CN=x"]
    command = ["openssl", "req", "-x509", *options, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_shake_hands, args=(server, context))
        thread.start()
        with pytest.raises(RequestFailed) as failed:
            send(f"https://127.0.0.1:{server.getsockname()[1]}/")
        thread.join(10)
    assert "SSLCertVerificationError" in str(failed.value)


def _shake_hands(server: socket.socket, context: ssl.SSLContext) -> None:
    connection, _ = server.accept()
    with connection, suppress(OSError):
        context.wrap_socket(connection, server_side=True).close()
