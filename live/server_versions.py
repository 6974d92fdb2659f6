"""The version of a server, which vLLM, SGLang and llama.cpp publish. Recorded with each answer."""

import json
import time
from typing import Any

import outbound
from live.models import LivePolicy

_PATHS = {"vllm": "/version", "sglang": "/get_server_info", "llama_cpp": "/props"}
_NAMES = ("version", "build_info")
_SECONDS = 300.0  # between two requests to a server
_MAX_BYTES = 1 << 20
_known: dict[str, tuple[float, str]] = {}


def fetch_version(policy: LivePolicy) -> str:
    """Return the version that the server states, or an empty string."""
    path = None if policy.is_example else _PATHS.get(policy.family)
    if path is None:
        return ""
    address = policy.address.rstrip("/").removesuffix("/v1") + path
    until, version = _known.get(address, (0.0, ""))
    if time.monotonic() >= until:
        version = _ask_version(address)
        _known[address] = (time.monotonic() + _SECONDS, version)
    return version


def _ask_version(address: str) -> str:
    try:
        response = outbound.get(address, {}, timeout=2.0, max_bytes=_MAX_BYTES)
        found: Any = json.loads(response.content) if response.status == 200 else {}
    except (outbound.AddressRefused, outbound.RequestFailed, ValueError, RecursionError):
        return ""
    values = [found.get(name) for name in _NAMES] if isinstance(found, dict) else []
    text = next((value for value in values if isinstance(value, str)), "")
    return text[:100] if text.isascii() and text.isprintable() else ""
