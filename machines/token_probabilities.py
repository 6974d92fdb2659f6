"""Read how probable “Yes” was in an answer, from the log probabilities of its tokens. Pure.

    {"choices": [{"logprobs": {"content": [
        {"token": " Yes", "logprob": -0.1, "bytes": [32, 89, 101, 115],
         "top_logprobs": [{"token": " Yes", "logprob": -0.1}, {"token": " No", "logprob": -2.4}]}, …]}}]}

This is the shape of OpenAI's chat protocol, which vLLM, SGLang and llama.cpp share. P(Yes) is the probability of the
tokens that begin “Yes” over that of the tokens that begin “Yes” or “No”. Tokens are matched as bytes, because one
character may be several tokens.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

N_CANDIDATES = 5  # per token, as asked from the endpoint
_YES, _NO = frozenset({"y", "ye", "yes"}), frozenset({"n", "no"})
_AROUND = " \t\r\n*_:.\"'`#Ġ▁"


@dataclass(frozen=True)
class AnswerToken:
    """A token of an answer, and the probabilities of what could have been there."""

    content: bytes
    candidates: dict[str, float]

    @property
    def yes_share(self) -> float | None:
        sums = [
            sum(share for text, share in self.candidates.items() if text.strip(_AROUND).casefold() in words)
            for words in (_YES, _NO)
        ]
        return sums[0] / sum(sums) if sum(sums) > 0 else None


def read_tokens(body: bytes) -> list[AnswerToken]:
    """Return the tokens of the first choice of a body; empty if it states none, or in another shape."""
    try:
        rows = json.loads(body)["choices"][0]["logprobs"]["content"]
        return [_read_token(row) for row in rows]
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        return []


def _read_token(row: dict[str, Any]) -> AnswerToken:
    text, numbers = str(row["token"]), row.get("bytes")
    candidates = {str(each["token"]): _read_share(each["logprob"]) for each in row.get("top_logprobs") or ()}
    candidates.setdefault(text, _read_share(row["logprob"]))
    return AnswerToken(bytes(numbers) if isinstance(numbers, list) else text.encode(), candidates)


def _read_share(logprob: Any) -> float:
    value = float(logprob)
    if math.isnan(value):
        raise ValueError("a log probability is not a number")
    return math.exp(min(value, 0.0))


def find_yes_shares(tokens: Sequence[AnswerToken], text: str, places: Sequence[int]) -> list[float | None]:
    """Return P(Yes) at each of these places of a text. None where the tokens do not contain the text or the words."""
    whole, start = b"".join(token.content for token in tokens), 0
    offset = whole.rfind(text.encode("utf-8", "replace"))
    if offset < 0 or not text:
        return [None] * len(places)
    by_end: list[tuple[int, AnswerToken]] = []
    for token in tokens:
        start += len(token.content)
        by_end.append((start, token))
    ends = [offset + len(text[:place].encode("utf-8", "replace")) for place in places]
    return [next((token.yes_share for end, token in by_end if end > at), None) for at in ends]
