"""A trace's scores as bytes: score (NaN for context), words and characters of each step. Pure."""

from collections.abc import Sequence

import numpy as np

from stats.arrays import Floats, Ints

COLUMNS = 3
_BYTES_PER_STEP = 4 * COLUMNS


def encode_scores(scores: Floats, texts: Sequence[str], is_rateable: Sequence[bool]) -> bytes:
    rows = np.empty((len(texts), COLUMNS), dtype="<f4")
    rows[:, 0] = np.where(is_rateable, scores, np.nan)
    rows[:, 1] = [len(text.split()) for text in texts]
    rows[:, 2] = [len(text) for text in texts]
    return rows.tobytes()


def decode_scores(encoded: Sequence[bytes]) -> tuple[Floats, Ints]:
    """Return all steps of all traces end to end as (steps, COLUMNS), and the length of each trace."""
    lengths = np.array([len(each) // _BYTES_PER_STEP for each in encoded], dtype=np.int64)
    return np.frombuffer(b"".join(encoded), dtype="<f4").astype(np.float64).reshape(-1, COLUMNS), lengths


def encode_ids(ids: Sequence[int]) -> bytes:
    return np.array(ids, dtype="<i8").tobytes()


def decode_ids(encoded: bytes) -> list[int]:
    ids: list[int] = np.frombuffer(encoded, dtype="<i8").tolist()
    return ids
