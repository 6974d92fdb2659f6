"""One request to a scorer elsewhere: with a time limit, tried again where that can help, never followed elsewhere.

Tried again: no connection, no answer in time, 408, 429, 5xx. Each time after twice as long. Any other answer than 200
is the scorer's last word.
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

from prm.backends.base import BackendError, BackendUnreachable, BadScores

_RETRYABLE_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_LARGEST = 64 << 20
_FIRST_WAIT, _LONGEST_WAIT = 0.25, 8.0


@dataclass(frozen=True)
class RetryPolicy:
    """Seconds for one try, and how many tries."""

    timeout: float = 30.0
    tries: int = 4


DEFAULT_RETRY_POLICY = RetryPolicy()


class _RetryableError(Exception):
    """This try failed in a way that another may not."""


def validate_address(address: str) -> str:
    """An address that may be asked: http or https, with a host, no name and password in it, no link-local machine."""
    host = _parse_host(address)
    if not host:
        raise BackendError("The address must look like https://host:port/path, without a user name in it.")
    _refuse_link_local(host)
    return address


def _parse_host(address: str) -> str:
    """Empty where no request can be sent there."""
    try:
        parts = urlsplit(address)
        host, _port = parts.hostname or "", parts.port  # each raises ValueError where it is none
        host.encode("idna")
    except ValueError:
        return ""
    is_plain = f"{parts.path}{parts.query}".isascii() and address.isprintable() and " " not in address
    is_ours = parts.scheme in {"http", "https"} and not (parts.username or parts.password)
    return host if is_plain and is_ours else ""


def _refuse_link_local(host: str) -> None:
    """Clouds tell their machines' own credentials there."""
    try:
        found = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except OSError:
        return  # not known yet: the request itself will say so
    if any(ipaddress.ip_address(str(each).split("%")[0]).is_link_local for each in found):
        raise BackendError(f"The address {host} is link-local: no scorer is asked there.")


def post_json(address: str, body: bytes, headers: Mapping[str, str], *, patience: RetryPolicy) -> Any:
    """The JSON that was answered."""
    parts, problem = urlsplit(validate_address(address)), ""
    for attempt in range(patience.tries):
        if attempt:
            time.sleep(min(_FIRST_WAIT * 2 ** (attempt - 1), _LONGEST_WAIT))
        try:
            return _decode_json(_send_once(parts, body, headers, patience.timeout))
        except _RetryableError as error:
            problem = str(error)
    raise BackendUnreachable(f"{parts.hostname} did not answer in {patience.tries} tries: {problem}.")


def _send_once(parts: SplitResult, body: bytes, headers: Mapping[str, str], timeout: float) -> bytes:
    link = _open_connection(parts, timeout)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        link.request("POST", target, body, {"Content-Type": "application/json", **headers})
        answer = link.getresponse()
        content = answer.read(_LARGEST + 1)
    except (OSError, http.client.HTTPException) as error:
        raise _RetryableError(f"{type(error).__name__} {error}".strip()) from None
    finally:
        link.close()
    return _check_status(answer.status, content)


def _open_connection(parts: SplitResult, timeout: float) -> http.client.HTTPConnection:
    host = parts.hostname or ""
    if parts.scheme == "https":
        return http.client.HTTPSConnection(host, parts.port, timeout=timeout, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, parts.port, timeout=timeout)


def _check_status(status: int, content: bytes) -> bytes:
    said = " ".join(content[:300].decode("utf-8", "replace").split())
    if status in _RETRYABLE_STATUSES:
        raise _RetryableError(f"it answered {status} {said}")
    if status != 200:
        raise BackendError(f"The scorer answered {status}: {said}")
    if len(content) > _LARGEST:
        raise BadScores(f"The scorer answered with more than {_LARGEST >> 20} MB.")
    return content


def _decode_json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        raise BadScores(f"The scorer's answer is no JSON: {content[:80]!r}") from None
