"""Splits by the problem itself: the same for everybody, whatever the order of the file or the process.

Never by Python's hash(), which is another one in every process. Which problems are set aside as reserve is decided at
import (`labeling.traces.identity`); folds here are of what is left.
"""

import hashlib

_WHOLE = 1 << 64


def hash_position(problem: str, *, salt: str = "") -> float:
    """A number in [0, 1) that belongs to this problem and this salt."""
    digest = hashlib.sha256(f"{salt}\0{problem}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / _WHOLE


def assign_fold(problem: str, *, folds: int, salt: str = "") -> int:
    return int(hash_position(problem, salt=f"fold{salt}") * folds)
