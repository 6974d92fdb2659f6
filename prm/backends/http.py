"""Any other scorer, by our own contract (docs/scorer.openapi.json): signed, idempotent, one number per step.

    POST {address}   {"model": "…", "traces": [{"problem": "…", "steps": ["…", …]}, …]}
    200              {"model": "…", "digest": "…", "scores": [[0.98, 0.4], …]}

The signature is HMAC-SHA256 over `timestamp.body` with the shared secret. The idempotency key is a hash of the body, so
that a retry has the key of its first attempt.
"""

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prm.backends import transport
from prm.backends.base import BadScores, ScorerInput, WrongModel
from prm.backends.transport import RetryPolicy
from stats.arrays import Floats


@dataclass(frozen=True)
class HttpBackend:
    """With a `digest`, answers of a model with another digest are refused."""

    address: str
    model: str
    secret: str
    digest: str = ""
    batch: int = 64
    retry: RetryPolicy = transport.DEFAULT_RETRY_POLICY
    clock: Callable[[], float] = time.time

    def score(self, traces: Sequence[ScorerInput]) -> list[Floats]:
        starts = range(0, len(traces), self.batch)
        return [scores for start in starts for scores in self._score_batch(traces[start : start + self.batch])]

    def _score_batch(self, traces: Sequence[ScorerInput]) -> list[Floats]:
        content = [{"problem": trace.problem, "steps": list(trace.steps)} for trace in traces]
        body = json.dumps({"model": self.model, "traces": content}).encode()
        headers = sign_request(body, self.secret, at=int(self.clock()))
        answer = transport.post_json(self.address, body, headers, retry=self.retry)
        if not isinstance(answer, dict) or not isinstance(answer.get("scores"), list):
            raise BadScores("The scorer's answer has no list “scores”.")
        digest = str(answer.get("digest", ""))
        if self.digest and digest and digest != self.digest:
            raise WrongModel(
                f"The address serves the model {digest}, but {self.digest} is registered. Register the new model as a"
                " version."
            )
        return [_parse_scores(row) for row in answer["scores"]]


def sign_request(body: bytes, secret: str, *, at: int) -> dict[str, str]:
    mac = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return {
        "X-Stepmark-Timestamp": str(at),
        "X-Stepmark-Signature": f"sha256={mac}",
        "Idempotency-Key": hashlib.sha256(body).hexdigest(),
    }


def _parse_scores(row: Any) -> Floats:
    """Convert a row of the answer; null becomes NaN, which `validate_scores` refuses."""
    if not isinstance(row, list) or any(not isinstance(score, int | float | None) for score in row):
        raise BadScores("The scorer returned scores that are not numbers.")
    return np.array([np.nan if score is None else score for score in row], dtype=np.float64)
