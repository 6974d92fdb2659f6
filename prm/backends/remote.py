"""Scorers on other machines: vLLM, and any server with our own contract. Both are called by one POST per batch.

vLLM (`vllm serve MODEL --runner pooling`) is called at POST /pooling. Its two prompt styles differ in how steps are
marked and which column is P(step right). A step tag in a text would add a row, and a chat marker could impersonate the
user, so both are broken up.

    qwen            <extra_0> after each step, the model's own chat template; column 1 (Qwen2.5-Math-PRM)
    math_shepherd   "Step 1: … ки" lines; column 0 (the server learns the tags by --pooler-config)

Our own contract (docs/scorer.openapi.json) is signed and idempotent. The signature is HMAC-SHA256 over `timestamp.body`
with the shared secret. The idempotency key is a hash of the body, so that a retry has the key of its first attempt.

    POST {address}   {"model": "…", "traces": [{"problem": "…", "steps": ["…", …]}, …]}
    200              {"model": "…", "digest": "…", "scores": [[0.98, 0.4], …]}

`outbound` checks the address and bounds time and size. Connection errors, time-outs, 408, 429 and 5xx are retried
with doubling delays. Any other status than 200 is final.
"""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import numpy as np

import outbound
from jobs import paging
from prm.backends.base import (
    BackendUnreachable,
    BadScores,
    InvalidAddress,
    RequestRefused,
    ScorerInput,
    WrongModel,
    WrongScoreCount,
)
from stats.arrays import Floats

_ZERO_WIDTH_SPACE = "\u200b"
_CHAT_MARKER = re.compile(r"<\|(?=[a-z_]+\|>)")
_RETRYABLE_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_MAX_BYTES = 64 << 20
_FIRST_DELAY, _MAX_DELAY = 0.25, 8.0


@dataclass(frozen=True)
class RetryPolicy:
    """`timeout` is in seconds and holds for one attempt."""

    timeout: float = 30.0
    tries: int = 4


DEFAULT_RETRY_POLICY = RetryPolicy()


@dataclass(frozen=True)
class PromptStyle:
    tag: str
    column: int


PROMPT_STYLES = {"qwen": PromptStyle("<extra_0>", 1), "math_shepherd": PromptStyle("ки", 0)}


@dataclass(frozen=True)
class VllmBackend:
    """`address` is the server's root, `batch` the number of traces per request."""

    address: str
    model: str
    style: str = "qwen"
    token: str = ""
    batch: int = 16
    retry: RetryPolicy = DEFAULT_RETRY_POLICY

    def score(self, traces: Sequence[ScorerInput]) -> list[Floats]:
        return [scores for part in paging.split(traces, self.batch) for scores in self._score_batch(part)]

    def _score_batch(self, traces: Sequence[ScorerInput]) -> list[Floats]:
        prompts = [build_prompt(trace, self.style) for trace in traces]
        body = {"model": self.model, "task": "token_classify", "input": prompts if len(prompts) > 1 else prompts[0]}
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        address = self.address.rstrip("/") + "/pooling"
        answer = post_json(address, json.dumps(body).encode(), headers, retry=self.retry)
        results = _sort_results(answer, len(traces))
        column = PROMPT_STYLES[self.style].column
        return [_extract_column(rows, trace, column) for rows, trace in zip(results, traces, strict=True)]


def build_prompt(trace: ScorerInput, style: str) -> str:
    tag = PROMPT_STYLES[style].tag
    problem, steps = _escape_markers(trace.problem, tag), [_escape_markers(step, tag) for step in trace.steps]
    if style == "math_shepherd":
        lines = "\n".join(f"Step {number}: {step} {tag}" for number, step in enumerate(steps, start=1))
        return f"{problem} {lines}"
    return (
        "<|im_start|>system\nPlease reason step by step, and put your final answer within \\boxed{}.<|im_end|>\n"
        f"<|im_start|>user\n{problem}<|im_end|>\n"
        f"<|im_start|>assistant\n{''.join(step + tag for step in steps)}<|im_end|><|endoftext|>"
    )


def _escape_markers(text: str, tag: str) -> str:
    return _CHAT_MARKER.sub(f"<{_ZERO_WIDTH_SPACE}|", text.replace(tag, tag[0] + _ZERO_WIDTH_SPACE + tag[1:]))


def _sort_results(answer: Any, expected: int) -> list[Any]:
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list) or len(data) != expected or not all(isinstance(each, dict) for each in data):
        received = len(data) if isinstance(data, list) else 0
        raise WrongScoreCount(f"vLLM answered for {received} traces instead of {expected}.")
    return [each.get("data") for each in sorted(data, key=lambda each: each.get("index", 0))]


def _extract_column(rows: Any, trace: ScorerInput, column: int) -> Floats:
    n_steps = len(trace.steps)
    if not isinstance(rows, list) or len(rows) != n_steps:
        received = len(rows) if isinstance(rows, list) else 0
        raise WrongScoreCount(
            f"The model returned {received} rows for the {n_steps} steps of “{trace.problem[:60]}”. Choose the style"
            " whose step tag the model knows, or correct --pooler-config."
        )
    try:
        pairs = np.array(rows, dtype=np.float64).reshape(len(rows), 2)
    except (TypeError, ValueError):
        raise BadScores("vLLM must return two numbers for each step.") from None
    return np.asarray(pairs[:, column])


# --- our own contract -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HttpBackend:
    """With a `digest`, answers of a model with another digest are refused."""

    address: str
    model: str
    secret: str
    digest: str = ""
    batch: int = 64
    retry: RetryPolicy = DEFAULT_RETRY_POLICY
    clock: Callable[[], float] = time.time

    def score(self, traces: Sequence[ScorerInput]) -> list[Floats]:
        return [scores for part in paging.split(traces, self.batch) for scores in self._score_batch(part)]

    def _score_batch(self, traces: Sequence[ScorerInput]) -> list[Floats]:
        content = [{"problem": trace.problem, "steps": list(trace.steps)} for trace in traces]
        body = json.dumps({"model": self.model, "traces": content}).encode()
        headers = outbound.sign_request(body, self.secret, at=int(self.clock()))
        answer = post_json(self.address, body, headers, retry=self.retry)
        if not isinstance(answer, dict) or not isinstance(answer.get("scores"), list):
            raise BadScores("The scorer's answer has no list “scores”.")
        digest = str(answer.get("digest", ""))
        if self.digest and digest and digest != self.digest:
            raise WrongModel(
                f"The address serves the model {digest}, but {self.digest} is registered. Register the new model as a"
                " version."
            )
        return [_parse_scores(row) for row in answer["scores"]]


def _parse_scores(row: Any) -> Floats:
    """Convert a row of the answer; null becomes NaN, which `validate_scores` refuses."""
    if not isinstance(row, list) or any(not isinstance(score, int | float | None) for score in row):
        raise BadScores("The scorer returned scores that are not numbers.")
    return np.array([np.nan if score is None else score for score in row], dtype=np.float64)


# --- requests ---------------------------------------------------------------------------------------------------------


class _RetryableError(Exception):
    """The attempt failed, but another one may succeed."""


def validate_address(address: str) -> str:
    """Return the address, or raise InvalidAddress if it must not be called."""
    try:
        return outbound.check_address(address)
    except outbound.AddressRefused as error:
        raise InvalidAddress(str(error)) from None


def post_json(address: str, body: bytes, headers: Mapping[str, str], *, retry: RetryPolicy) -> Any:
    """Send the request and return the decoded JSON answer. Errors never contain the answer."""
    host, problem = urlsplit(validate_address(address)).hostname, ""
    for attempt in range(retry.tries):
        if attempt:
            time.sleep(min(_FIRST_DELAY * 2 ** (attempt - 1), _MAX_DELAY))
        try:
            content = _send_once(address, body, headers, retry.timeout)
        except _RetryableError as error:
            problem = str(error)
            continue
        try:
            return json.loads(content)
        except ValueError:
            raise BadScores("The scorer's answer is not JSON.") from None
    raise BackendUnreachable(
        f"{host} did not answer in {retry.tries} attempts ({problem}). Check that the scorer is running."
    )


def _send_once(address: str, body: bytes, headers: Mapping[str, str], timeout: float) -> bytes:
    try:
        response = outbound.post(address, body, headers, timeout=timeout, max_bytes=_MAX_BYTES)
    except outbound.AddressRefused as error:
        raise InvalidAddress(str(error)) from None
    except outbound.RequestFailed as error:
        raise _RetryableError(str(error)) from None
    if response.status in _RETRYABLE_STATUSES:
        raise _RetryableError(f"status {response.status}")
    if response.status != 200:
        raise RequestRefused(response.status)
    if response.is_cut:
        raise BadScores(
            f"The scorer's answer is larger than {_MAX_BYTES >> 20} MB. Register the PRM with a smaller batch."
        )
    return response.content
