"""Ask an endpoint with OpenAI's protocol: vLLM, SGLang, llama.cpp, or a hosted model.

    POST {address}/chat/completions   {"model": "…", "messages": [{"role": "user", "content": "…"}], …}
    200   {"choices": [{"message": {"content": "…"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": …, …}}

    POST {address}/completions        {"model": "…", "prompt": "…", "stop": ["…"], …}     continues a text
    200   {"choices": [{"text": "…", "finish_reason": "stop"}], "usage": {…}}

Threads ask; they never touch the database. Connection errors, time-outs, 408, 409, 425, 429 and 5xx are retried with
doubling delays and jitter. A `Retry-After` holds back all threads of the run, because the endpoint counts them
together; if it is longer than a minute, the run pauses instead of waiting. Each request carries an idempotency key,
so that a gateway that knows the header does not charge for a repeated request.
"""

import datetime as dt
import email.utils
import json
import random
import threading
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import outbound

_RETRYABLE_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_CONFIGURATION_STATUSES = frozenset({401, 402, 403, 404, 405})
_MAX_BYTES = 8 << 20
_FIRST_DELAY, _MAX_DELAY = 0.5, 30.0
LONGEST_WAIT = 60.0  # seconds in a thread; a longer wait pauses the run
_CHARACTERS_PER_TOKEN = 4  # for answers that state no usage


class EndpointFamily(StrEnum):
    VLLM = "vllm"
    SGLANG = "sglang"
    LLAMA_CPP = "llama_cpp"
    OPENAI = "openai"
    HOSTED = "hosted"


@dataclass(frozen=True)
class ChatEndpoint:
    """`address` is the root of the API, usually ending in /v1."""

    address: str
    model: str
    family: str = EndpointFamily.VLLM
    key: str = ""
    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 8192
    timeout: float = 120.0
    continues_text: bool = False  # the prompt is the beginning of a text, not a message
    stop: str = ""  # text at which a continuation ends
    n_candidates: int = 0  # most probable tokens that the answer states for each of its tokens
    tries: int = 4
    first_delay: float = _FIRST_DELAY


@dataclass(frozen=True)
class ChatReply:
    """One answer. `text` is empty and `is_complete` false if the body is not an answer at all."""

    content: bytes  # the whole body, as received
    text: str
    is_complete: bool
    finish_reason: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    is_usage_estimated: bool
    milliseconds: int
    n_attempts: int


class EndpointAnswer(NamedTuple):
    """A response with status 200, and what it took to get it."""

    response: outbound.OutboundResponse
    milliseconds: int
    n_attempts: int


class EndpointProblem(Exception):
    """The message is one line for the page and the terminal. It never contains an answer of the endpoint."""


class EndpointDown(EndpointProblem):
    """No attempt was answered. `retry_after` is in seconds, if the endpoint asked for a wait."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class EndpointMisconfigured(EndpointProblem):
    """The endpoint refuses all requests of this judge: its address, its key or its model is wrong."""


class ChatRefused(EndpointProblem):
    """The endpoint refuses this request, for example because it is too long."""

    def __init__(self, status: int) -> None:
        super().__init__(f"The endpoint answered {status}.")
        self.status = status


class EndpointGate:
    """Holds back the threads of a run until a moment that the endpoint named, and wakes them when the run stops."""

    def __init__(self) -> None:
        self._opens_at = 0.0
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def hold(self, seconds: float) -> None:
        with self._lock:
            self._opens_at = max(self._opens_at, time.monotonic() + seconds)

    def stop(self) -> None:
        self._stopped.set()

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    def wait(self, seconds: float = 0.0) -> None:
        """Wait for these seconds and until the gate is open."""
        ends_at = time.monotonic() + seconds
        while not self._stopped.is_set():
            left = max(ends_at, self._opens_at) - time.monotonic()
            if left <= 0:
                return
            self._stopped.wait(left)


def ask_endpoint(endpoint: ChatEndpoint, prompt: str, *, key: str, seed: int, gate: EndpointGate) -> ChatReply:
    """Return the answer to one prompt, or raise an EndpointProblem."""
    address = endpoint.address.rstrip("/") + ("/completions" if endpoint.continues_text else "/chat/completions")
    answer = post_request(endpoint, address, _build_request(endpoint, prompt, seed), key=key, gate=gate)
    return _read_reply(answer.response, prompt, answer.milliseconds, answer.n_attempts)


def post_request(
    endpoint: ChatEndpoint, address: str, request: dict[str, Any], *, key: str, gate: EndpointGate
) -> EndpointAnswer:
    """Send a request until the endpoint answers it with status 200, or raise an EndpointProblem."""
    body = json.dumps(request).encode()
    headers = {"Idempotency-Key": key}
    if endpoint.key:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    problem = "not asked"
    for attempt in range(1, endpoint.tries + 1):
        gate.wait(_delay(endpoint, attempt))
        if gate.is_stopped:
            raise EndpointDown(_describe_down(endpoint, problem))
        started = time.monotonic()
        try:
            response = outbound.post(address, body, headers, timeout=endpoint.timeout, max_bytes=_MAX_BYTES)
        except outbound.AddressRefused as error:
            raise EndpointMisconfigured(str(error)) from None
        except outbound.RequestFailed as error:
            problem = str(error)
            continue
        if response.status == 200:
            return EndpointAnswer(response, int((time.monotonic() - started) * 1000), attempt)
        problem = f"status {response.status}"
        _handle_error(endpoint, response, gate)
    raise EndpointDown(_describe_down(endpoint, problem))


def _build_request(endpoint: ChatEndpoint, prompt: str, seed: int) -> dict[str, Any]:
    request: dict[str, Any] = {
        "model": endpoint.model,
        "temperature": endpoint.temperature,
        "top_p": endpoint.top_p,
    }
    if endpoint.continues_text:
        request["prompt"] = prompt
        if endpoint.stop:
            request["stop"] = [endpoint.stop]
    else:
        request["messages"] = [{"role": "user", "content": prompt}]
    if endpoint.n_candidates:
        request |= {"logprobs": True, "top_logprobs": endpoint.n_candidates}
    if endpoint.family == EndpointFamily.OPENAI and not endpoint.continues_text:
        return request | {"max_completion_tokens": endpoint.max_tokens}
    if endpoint.family not in (EndpointFamily.HOSTED, EndpointFamily.OPENAI):
        request["seed"] = seed
    return request | {"max_tokens": endpoint.max_tokens}


def _delay(endpoint: ChatEndpoint, attempt: int) -> float:
    if attempt == 1:
        return 0.0
    delay = min(endpoint.first_delay * 2.0 ** (attempt - 2), _MAX_DELAY)
    return delay * random.uniform(0.75, 1.25)  # noqa: S311  so that the threads do not return together


def _handle_error(endpoint: ChatEndpoint, response: outbound.OutboundResponse, gate: EndpointGate) -> None:
    """Return if the request may be repeated, or raise the problem."""
    if response.status in _CONFIGURATION_STATUSES:
        raise EndpointMisconfigured(
            f"{_host(endpoint)} answered {response.status}. Check the address, the key and the model name of the judge."
        )
    if response.status not in _RETRYABLE_STATUSES:
        raise ChatRefused(response.status)
    wait = parse_retry_after(response.retry_after, now=_utc_now())
    if wait is None:
        return
    if wait > LONGEST_WAIT:
        message = f"{_host(endpoint)} answered {response.status} and asks to wait for {wait:.0f} seconds."
        raise EndpointDown(message, retry_after=wait)
    gate.hold(wait)


def _utc_now() -> dt.datetime:
    return dt.datetime.fromtimestamp(time.time_ns() / 1e9, dt.UTC)


def parse_retry_after(header: str, *, now: dt.datetime) -> float | None:
    """Return the seconds to wait: the header is a number of seconds or a date."""
    header = header.strip()
    if header.isascii() and header.isdigit():
        return float(header[:9])
    try:
        moment = email.utils.parsedate_to_datetime(header)
    except (TypeError, ValueError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return max((moment - now).total_seconds(), 0.0)


def _read_reply(response: outbound.OutboundResponse, prompt: str, milliseconds: int, n_attempts: int) -> ChatReply:
    """Read a body with status 200. A body in another shape was paid for too, so it is an answer without text."""
    content = b"" if response.is_cut else response.content
    answer = _decode(content)
    text, finish, is_answer = read_choice(content)
    usage = answer.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    stated = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
    counts = [n for n in stated if isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 2**31]
    is_stated = len(counts) == 2
    prompt_tokens, completion_tokens = counts if is_stated else [_estimate_tokens(prompt), _estimate_tokens(text)]
    return ChatReply(
        content=response.content,
        text=text,
        is_complete=is_answer and finish != "length",
        finish_reason=finish,
        model=str(answer.get("model", ""))[:200].replace("\0", ""),
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        is_usage_estimated=not is_stated,
        milliseconds=milliseconds,
        n_attempts=n_attempts,
    )


def read_choice(content: bytes) -> tuple[str, str, bool]:
    """Return the text and the finish reason of the first choice of a body, and whether it has one at all."""
    choices = _decode(content).get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return "", "", False
    message, finish = choices[0].get("message"), choices[0].get("finish_reason")
    text = _read_text(message.get("content") if isinstance(message, dict) else choices[0].get("text"))
    return text, finish[:40].replace("\0", "") if isinstance(finish, str) else "", True


def _decode(content: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):  # orjson refuses half a surrogate pair, which some models write
        return {}
    return answer if isinstance(answer, dict) else {}


def _read_text(content: Any) -> str:
    """Return the text of a message, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def _estimate_tokens(text: str) -> int:
    return -(-len(text) // _CHARACTERS_PER_TOKEN)


def _host(endpoint: ChatEndpoint) -> str:
    return urlsplit(endpoint.address).hostname or endpoint.address[:100]


def _describe_down(endpoint: ChatEndpoint, problem: str) -> str:
    n = endpoint.tries
    return f"{_host(endpoint)} did not answer in {n} attempts ({problem}). Check that the endpoint is running."
