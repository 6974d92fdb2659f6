"""A trace's scores as bytes: of each step the score (NaN for context), its words, its characters. Pure."""

from collections.abc import Sequence

import numpy as np

from stats.arrays import Floats, Ints

COLUMNS = 3
_WIDTH = 4 * COLUMNS


def encode_scores(scores: Floats, texts: Sequence[str], is_rateable: Sequence[bool]) -> bytes:
    rows = np.empty((len(texts), COLUMNS), dtype="<f4")
    rows[:, 0] = np.where(is_rateable, scores, np.nan)
    rows[:, 1] = [len(text.split()) for text in texts]
    rows[:, 2] = [len(text) for text in texts]
    return rows.tobytes()


def decode_scores(kept: Sequence[bytes]) -> tuple[Floats, Ints]:
    """All steps of all traces end to end, (steps, COLUMNS), and how many each trace has."""
    lengths = np.array([len(each) // _WIDTH for each in kept], dtype=np.int64)
    return np.frombuffer(b"".join(kept), dtype="<f4").astype(np.float64).reshape(-1, COLUMNS), lengths


def encode_ids(ids: Sequence[int]) -> bytes:
    return np.array(ids, dtype="<i8").tobytes()


def decode_ids(kept: bytes) -> list[int]:
    found: list[int] = np.frombuffer(kept, dtype="<i8").tolist()
    return found
