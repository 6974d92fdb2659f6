"""Requests to addresses that users enter: scorers, judges, answer checkers, and webhooks.

Users must not reach what only this machine can reach: other services on it, private networks, and the addresses at
which clouds publish credentials. A host is therefore resolved once, every address must be public, and the connection is
made to the checked address, so that a second DNS answer cannot lead elsewhere. The operator allows other hosts in
`STEPMARK_OUTBOUND_HOSTS`. Redirects are not followed, and proxy variables are ignored.

Object stores and hubs need no check: only the operator enters their addresses.

This uses the standard library rather than httpx, which adds five packages, 0.2 s to the start and 8 MB to every
process (measured with httpx 0.28), resolves hosts by itself, accepts hosts and ports that no request can reach, and has
no limit for the size of an answer.
"""

import hashlib
import hmac
import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

# Public by their numbers, but clouds publish credentials and settings of a machine there.
_METADATA = frozenset({ipaddress.ip_address("168.63.129.16"), ipaddress.ip_address("fd00:ec2::254")})
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_LAST_32_BITS = 2**32 - 1


class AddressRefused(Exception):
    """The address must not be called. `code`: "invalid" or "not_public". The message is for who entered it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class RequestFailed(Exception):
    """No answer: the host is unknown, refuses the connection, is too slow, or does not speak HTTP."""


class OutboundResponse(NamedTuple):
    status: int
    # At most `max_bytes`. Never shown as it is, or users could read other services through it.
    content: bytes
    is_cut: bool
    retry_after: str = ""  # the header, as sent


def check_address(address: str) -> str:
    """Return the address, or raise AddressRefused. A name that does not resolve now may do so later."""
    parts = _parse_address(address)
    with suppress(OSError):
        resolve_host(parts.hostname or "")
    return address


def resolve_host(host: str) -> list[str]:
    """Return the addresses of a host. Raise AddressRefused if one is not allowed, OSError if the name is unknown."""
    found = [str(info[4][0]) for info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]
    for each in found:
        if not _is_allowed(host, _embedded_ip(ipaddress.ip_address(each.split("%")[0]))):
            message = _("%(host)s is not a public address. The operator can allow it in STEPMARK_OUTBOUND_HOSTS.")
            raise AddressRefused("not_public", message % {"host": host})
    return list(dict.fromkeys(found))


def post(address: str, body: bytes, headers: Mapping[str, str], *, timeout: float, max_bytes: int) -> OutboundResponse:
    """Send one request, which takes at most `timeout` seconds. Raise AddressRefused or RequestFailed."""
    headers = {"Content-Type": "application/json", **headers}
    return _send("POST", address, body, headers, timeout=timeout, max_bytes=max_bytes)


def get(address: str, headers: Mapping[str, str], *, timeout: float, max_bytes: int) -> OutboundResponse:
    """Fetch a resource, with the same limits as `post`."""
    return _send("GET", address, None, headers, timeout=timeout, max_bytes=max_bytes)


def _send(
    method: str, address: str, body: bytes | None, headers: Mapping[str, str], *, timeout: float, max_bytes: int
) -> OutboundResponse:
    parts = _parse_address(address)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        with _connection(parts, timeout) as connection:
            connection.request(method, target, body, dict(headers))
            with connection.getresponse() as response:
                content = response.read(max_bytes + 1)
                if response.length and len(content) <= max_bytes:
                    raise http.client.IncompleteRead(content)  # which a read of a given size does not report
                retry_after = response.headers.get("Retry-After", "")
                return OutboundResponse(response.status, content[:max_bytes], len(content) > max_bytes, retry_after)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise RequestFailed(f"{type(error).__name__} {error}".strip()[:300]) from None


def sign_request(body: bytes, secret: str, *, at: int) -> dict[str, str]:
    """Return headers with HMAC-SHA256 over `timestamp.body`. The idempotency key is the same when the body is sent
    again."""
    mac = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return {
        "X-Stepmark-Timestamp": str(at),
        "X-Stepmark-Signature": f"sha256={mac}",
        "Idempotency-Key": hashlib.sha256(body).hexdigest(),
    }


def _parse_address(address: str) -> SplitResult:
    """Split an address to which a request can be sent."""
    try:
        parts = urlsplit(address)
        host, _port = parts.hostname or "", parts.port  # both raise ValueError if malformed
        host.encode("idna")
    except ValueError:
        host = ""
    else:
        is_plain = f"{parts.path}{parts.query}".isascii() and address.isprintable() and " " not in address
        if host and is_plain and parts.scheme in {"http", "https"} and not (parts.username or parts.password):
            return parts
    message = _("The URL “%(address)s” cannot be used. Use https://host:port/path without a username.")
    raise AddressRefused("invalid", message % {"address": address[:200]})


def _is_allowed(host: str, ip: IpAddress) -> bool:
    is_public = ip.is_global and not ip.is_multicast and ip not in _METADATA
    return is_public or any(_matches(entry, host, ip) for entry in settings.OUTBOUND_HOSTS)


def _matches(entry: str, host: str, ip: IpAddress) -> bool:
    """Whether an entry of the operator, a name, an address or a network, names the host."""
    try:
        return ip in ipaddress.ip_network(entry.strip("[]"))
    except ValueError:
        return entry.lower() == host.lower().rstrip(".")


def _embedded_ip(ip: IpAddress) -> IpAddress:
    """Return the IPv4 address that an IPv6 address leads to, otherwise the address."""
    if isinstance(ip, ipaddress.IPv4Address):
        return ip
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & _LAST_32_BITS)
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else ip)


@contextmanager
def _connection(parts: SplitResult, timeout: float) -> Iterator[http.client.HTTPConnection]:
    """Yield a connection to the checked address, which is cut after `timeout` seconds in all."""
    host, is_tls = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if is_tls else 80)
    opened = _open_socket(resolve_host(host), port, timeout)
    if is_tls:
        context = ssl.create_default_context()
        opened = context.wrap_socket(opened, server_hostname=host, do_handshake_on_connect=False)
    # A socket's own time limit starts again with each byte.
    watchdog = threading.Timer(timeout, _cut, [opened])
    watchdog.start()
    connection = http.client.HTTPConnection(host, port, timeout=timeout)
    try:
        if isinstance(opened, ssl.SSLSocket):
            opened.do_handshake()
        connection.sock = opened
        yield connection
    finally:
        watchdog.cancel()
        connection.close()
        opened.close()


def _open_socket(addresses: list[str], port: int, timeout: float) -> socket.socket:
    """Connect to the first address that answers."""
    problem: OSError = OSError("no address")
    for address in addresses:
        try:
            return socket.create_connection((address, port), timeout=timeout)
        except OSError as error:
            problem = error
    raise problem


def _cut(opened: socket.socket) -> None:
    with suppress(OSError):  # it is closed already
        opened.shutdown(socket.SHUT_RDWR)
