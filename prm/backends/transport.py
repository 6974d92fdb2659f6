"""One POST request to a scorer on another machine: bounded in time and size, retried if useful, never redirected.

Retried with doubling delays: connection errors, time-outs, 408, 429, 5xx. Any other status than 200 is final.

This uses the standard library rather than httpx. Measured with httpx 0.28, the module would be ten lines shorter, but
it adds five packages, 0.2 s to the start and 8 MB to every process that imports the registry, and it does none of what
is hard here: httpx accepts hosts and ports that no request can reach, has no size limit and no retry by status, and its
proxies, cookies and decompression would have to be turned off.
"""

import http.client
import ipaddress
import json
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from prm.backends.base import BackendUnreachable, BadScores, InvalidAddress, RequestRefused

_RETRYABLE_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_MAX_BYTES = 64 << 20
_FIRST_DELAY, _MAX_DELAY = 0.25, 8.0


@dataclass(frozen=True)
class RetryPolicy:
    """`timeout` is in seconds and holds for one attempt."""

    timeout: float = 30.0
    tries: int = 4


DEFAULT_RETRY_POLICY = RetryPolicy()


class _RetryableError(Exception):
    """The attempt failed in a way that another one may not."""


def validate_address(address: str) -> str:
    """Return the address, or raise InvalidAddress.

    It must be http or https with a host and without credentials, and must not be link-local: cloud machines publish
    their own credentials there.
    """
    host = _parse_host(address)
    if not host:
        raise InvalidAddress(
            f"The address {address[:200]!r} cannot be called. Use https://host:port/path without a user name."
        )
    try:
        ips = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except OSError:
        return address  # the name may resolve later; the request reports it otherwise
    if any(ipaddress.ip_address(str(ip).split("%")[0]).is_link_local for ip in ips):
        raise InvalidAddress(f"The address {host} is link-local and is never called. Use another address.")
    return address


def _parse_host(address: str) -> str:
    """Return the host, or "" if no request can be sent to this address."""
    try:
        parts = urlsplit(address)
        host, _port = parts.hostname or "", parts.port  # both raise ValueError if malformed
        host.encode("idna")
    except ValueError:
        return ""
    is_plain = f"{parts.path}{parts.query}".isascii() and address.isprintable() and " " not in address
    is_allowed = parts.scheme in {"http", "https"} and not (parts.username or parts.password)
    return host if is_plain and is_allowed else ""


def post_json(address: str, body: bytes, headers: Mapping[str, str], *, retry: RetryPolicy) -> Any:
    """Send the request and return the decoded JSON answer."""
    parts, problem = urlsplit(validate_address(address)), ""
    for attempt in range(retry.tries):
        if attempt:
            time.sleep(min(_FIRST_DELAY * 2 ** (attempt - 1), _MAX_DELAY))
        try:
            content = _send_once(parts, body, headers, retry.timeout)
        except _RetryableError as error:
            problem = str(error)
            continue
        try:
            return json.loads(content)
        except ValueError:
            raise BadScores(f"The scorer's answer is not JSON: {content[:80]!r}") from None
    raise BackendUnreachable(
        f"{parts.hostname} did not answer in {retry.tries} attempts ({problem}). Check that the scorer is running."
    )


def _send_once(parts: SplitResult, body: bytes, headers: Mapping[str, str], timeout: float) -> bytes:
    host, target = parts.hostname or "", (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection = (
        http.client.HTTPSConnection(host, parts.port, timeout=timeout, context=ssl.create_default_context())
        if parts.scheme == "https"
        else http.client.HTTPConnection(host, parts.port, timeout=timeout)
    )
    try:
        connection.request("POST", target, body, {"Content-Type": "application/json", **headers})
        with connection.getresponse() as response:
            content = response.read(_MAX_BYTES + 1)
    except (OSError, http.client.HTTPException) as error:
        raise _RetryableError(f"{type(error).__name__} {error}".strip()) from None
    finally:
        connection.close()
    excerpt = " ".join(content[:300].decode("utf-8", "replace").split())
    if response.status in _RETRYABLE_STATUSES:
        raise _RetryableError(f"status {response.status} {excerpt}".strip())
    if response.status != 200:
        raise RequestRefused(response.status, excerpt)
    if len(content) > _MAX_BYTES:
        raise BadScores(f"The scorer's answer is larger than {_MAX_BYTES >> 20} MB. Register it with a smaller batch.")
    return content
