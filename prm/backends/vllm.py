"""A PRM behind vLLM: `vllm serve MODEL --runner pooling`, called at POST /pooling.

The two prompt styles differ in how steps are marked and which column is P(step right):

    qwen            <extra_0> after each step, the model's own chat template; column 1 (Qwen2.5-Math-PRM)
    math_shepherd   "Step 1: … ки" lines; column 0 (the server learns the tags by --pooler-config)

A step tag in a text would add a row, and a chat marker could impersonate the user, so both are broken up.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prm.backends import transport
from prm.backends.base import BadScores, ScorerInput, WrongScoreCount
from prm.backends.transport import RetryPolicy
from stats.arrays import Floats

_ZERO_WIDTH_SPACE = "\u200b"
_CHAT_MARKER = re.compile(r"<\|(?=[a-z_]+\|>)")


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
    retry: RetryPolicy = transport.DEFAULT_RETRY_POLICY

    def score(self, traces: Sequence[ScorerInput]) -> list[Floats]:
        starts = range(0, len(traces), self.batch)
        return [scores for start in starts for scores in self._score_batch(traces[start : start + self.batch])]

    def _score_batch(self, traces: Sequence[ScorerInput]) -> list[Floats]:
        prompts = [build_prompt(trace, self.style) for trace in traces]
        body = {"model": self.model, "task": "token_classify", "input": prompts if len(prompts) > 1 else prompts[0]}
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        address = self.address.rstrip("/") + "/pooling"
        answer = transport.post_json(address, json.dumps(body).encode(), headers, retry=self.retry)
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
        raise WrongScoreCount(
            f"vLLM answered for {received} traces instead of {expected}.", received=received, expected=expected
        )
    return [each.get("data") for each in sorted(data, key=lambda each: each.get("index", 0))]


def _extract_column(rows: Any, trace: ScorerInput, column: int) -> Floats:
    n_steps = len(trace.steps)
    if not isinstance(rows, list) or len(rows) != n_steps:
        received = len(rows) if isinstance(rows, list) else 0
        raise WrongScoreCount(
            f"The model returned {received} rows for the {n_steps} steps of “{trace.problem[:60]}”. Choose the style"
            " whose step tag the model knows, or correct --pooler-config.",
            received=received,
            expected=n_steps,
        )
    try:
        pairs = np.array(rows, dtype=np.float64).reshape(len(rows), 2)
    except (TypeError, ValueError):
        raise BadScores("vLLM must return two numbers for each step.") from None
    return np.asarray(pairs[:, column])
