"""A PRM behind vLLM: `vllm serve MODEL --runner pooling`, asked at POST /pooling.

The two styles differ in how steps are marked and which column is P(step right):

    qwen            <extra_0> after each step, the model's own chat form; column 1 (Qwen2.5-Math-PRM)
    math_shepherd   "Step 1: … ки" lines; column 0 (the server is told the tags by --pooler-config)

A step that contains a tag would add a row, and one with a chat mark could speak for the user: both are broken up.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prm.backends import transport
from prm.backends.base import BadScores, ScorerInput
from prm.backends.transport import RetryPolicy
from stats.arrays import Floats

_GAP = "\u200b"  # unseen, and no token of a tag
_MARK = re.compile(r"<\|(?=[a-z_]+\|>)")


@dataclass(frozen=True)
class PromptStyle:
    tag: str
    column: int


PROMPT_STYLES = {"qwen": PromptStyle("<extra_0>", 1), "math_shepherd": PromptStyle("ки", 0)}


@dataclass(frozen=True)
class VllmBackend:
    """`address` is the server's root; `batch` is how many traces go into one request."""

    address: str
    model: str
    style: str = "qwen"
    token: str = ""
    batch: int = 16
    patience: RetryPolicy = transport.DEFAULT_RETRY_POLICY

    def score(self, traces: Sequence[ScorerInput]) -> list[Floats]:
        found: list[Floats] = []
        for start in range(0, len(traces), self.batch):
            found += self._score_batch(traces[start : start + self.batch])
        return found

    def _score_batch(self, traces: Sequence[ScorerInput]) -> list[Floats]:
        prompts = [build_prompt(trace, self.style) for trace in traces]
        body = {"model": self.model, "task": "token_classify", "input": prompts if len(prompts) > 1 else prompts[0]}
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        address = self.address.rstrip("/") + "/pooling"
        answer = transport.post_json(address, json.dumps(body).encode(), headers, patience=self.patience)
        rows = _order_by_index(answer, len(traces))
        return [
            _extract_column(row, trace, PROMPT_STYLES[self.style].column)
            for row, trace in zip(rows, traces, strict=True)
        ]


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
    return _MARK.sub(f"<{_GAP}|", text.replace(tag, tag[0] + _GAP + tag[1:]))


def _order_by_index(answer: Any, wanted: int) -> list[Any]:
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list) or len(data) != wanted or not all(isinstance(each, dict) for each in data):
        raise BadScores(f"vLLM answered for {len(data) if isinstance(data, list) else 0} traces, {wanted} were asked.")
    return [each.get("data") for each in sorted(data, key=lambda each: each.get("index", 0))]


def _extract_column(rows: Any, trace: ScorerInput, column: int) -> Floats:
    if not isinstance(rows, list) or len(rows) != len(trace.steps):
        raise BadScores(
            f"The model gave {len(rows) if isinstance(rows, list) else 0} rows for the {len(trace.steps)} steps of"
            f" “{trace.problem[:60]}”: its step tag is another one than this style's, or --pooler-config returns other"
            " tokens."
        )
    try:
        pairs = np.array(rows, dtype=np.float64).reshape(len(rows), 2)
    except (TypeError, ValueError):
        raise BadScores("vLLM answered with something else than two numbers for each step.") from None
    return np.asarray(pairs[:, column])
