"""Answers of endpoints as they are stored: the whole body, compressed."""

import zlib
from typing import NamedTuple

from machines import chat_endpoint
from machines.models import AnsweredVote

_MAX_BYTES = 16 << 20


class StoredAnswer(NamedTuple):
    text: str
    is_complete: bool
    body: bytes = b""


def pack_answer(content: bytes) -> bytes:
    return zlib.compress(content, level=6)


def unpack_answer(packed: bytes) -> bytes:
    return zlib.decompressobj().decompress(packed, _MAX_BYTES)


def read_stored_answer(vote: AnsweredVote) -> StoredAnswer:
    if not vote.answer:
        return StoredAnswer("", is_complete=True)
    body = unpack_answer(bytes(vote.answer))
    text, finish_reason, is_answer = chat_endpoint.read_choice(body)
    return StoredAnswer(text, is_answer and finish_reason != "length", body)
