"""Any other scorer, by our own contract (docs/scorer.openapi.json): signed, idempotent, one number per step.

    POST {address}   {"model": "…", "traces": [{"problem": "…", "steps": ["…", …]}, …]}
    200              {"model": "…", "digest": "…", "scores": [[0.98, 0.4], …]}

The signature is HMAC-SHA256 over `timestamp.body` with the shared secret; the idempotency key is a hash of the body, so
that a request that is tried again is the same request.
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
from prm.backends.base import BadScores, ScorerInput
from prm.backends.transport import RetryPolicy
from stats.arrays import Floats


@dataclass(frozen=True)
class HttpBackend:
    """Where `digest` is known, an answer of another one is refused: another model stands behind the address."""

    address: str
    model: str
    secret: str
    digest: str = ""
    batch: int = 64
    patience: RetryPolicy = transport.DEFAULT_RETRY_POLICY
    clock: Callable[[], float] = time.time

    def score(self, traces: Sequence[ScorerInput]) -> list[Floats]:
        found: list[Floats] = []
        for start in range(0, len(traces), self.batch):
            found += self._score_batch(traces[start : start + self.batch])
        return found

    def _score_batch(self, traces: Sequence[ScorerInput]) -> list[Floats]:
        asked = [{"problem": trace.problem, "steps": list(trace.steps)} for trace in traces]
        body = json.dumps({"model": self.model, "traces": asked}).encode()
        headers = sign_request(body, self.secret, at=int(self.clock()))
        answer = transport.post_json(self.address, body, headers, patience=self.patience)
        if not isinstance(answer, dict) or not isinstance(answer.get("scores"), list):
            raise BadScores("The scorer's answer has no list “scores”.")
        self._refuse_others(answer)
        return [_parse_scores(row) for row in answer["scores"]]

    def _refuse_others(self, answer: dict[str, Any]) -> None:
        found = str(answer.get("digest", ""))
        if self.digest and found and found != self.digest:
            raise BadScores(
                f"Behind the address stands {found}, registered is {self.digest}. Register the new model as a version."
            )


def sign_request(body: bytes, secret: str, *, at: int) -> dict[str, str]:
    mac = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return {
        "X-Stepmark-Timestamp": str(at),
        "X-Stepmark-Signature": f"sha256={mac}",
        "Idempotency-Key": hashlib.sha256(body).hexdigest(),
    }


def _parse_scores(row: Any) -> Floats:
    """A number that JSON cannot write arrives as null, and is refused as no number."""
    if not isinstance(row, list) or any(not isinstance(each, int | float | None) for each in row):
        raise BadScores("The scorer gave something else than numbers.")
    return np.array([np.nan if each is None else each for each in row], dtype=np.float64)
