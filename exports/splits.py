"""On which side of a split a problem stands. Pure.

By the problem itself, never by chance or by place: a data set that grows moves nobody, and two writings of one problem,
or two that are nearly the same, stand on the same side.
"""

import hashlib
from collections.abc import Mapping

TRAIN, VALIDATION, TEST = "train", "validation", "test"
_WHOLE = 1 << 64


def side(digest: str, *, validation: float, test: float, leaders: Mapping[str, str]) -> str:
    """`leaders` names, for a problem that is nearly the same as an older one, that one."""
    place = _place(leaders.get(digest, digest))
    if place < test:
        return TEST
    return VALIDATION if place < test + validation else TRAIN


def _place(digest: str) -> float:
    """A number in [0, 1). Not the one that decides on the reserve: that would empty one side."""
    return int.from_bytes(hashlib.sha256(f"split\0{digest}".encode()).digest()[:8], "big") / _WHOLE
