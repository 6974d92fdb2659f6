"""On which side of a split a problem stands. Pure.

By the problem itself, never by chance: a data set that grows moves nobody. A problem that is nearly the same as older
ones sits with them. Is it like two that lie apart, no side is right for it: the older ones stay, and it is left out
wherever the shares part them.
"""

import hashlib
from array import array
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from formats.near_duplicates import SLOTS, EarlierTexts

TRAIN, VALIDATION, TEST = "train", "validation", "test"
_WHOLE = 1 << 64


class SplitInterval(NamedTuple):
    """A stretch of [0, 1): one point, that of the problem or of what it is like, or from the lowest to the highest of
    several. Sides are stretches too, so the two ends say all that any shares could ask."""

    low: float
    high: float

    def side(self, *, validation: float, test: float) -> str | None:
        """None where the shares would part what this is like."""
        found = split_at(self.low, validation=validation, test=test)
        return found if found == split_at(self.high, validation=validation, test=test) else None


def split_position(digest: str) -> float:
    """A number in [0, 1). Not the one that decides on the reserve: that would empty one side."""
    return int.from_bytes(hashlib.sha256(f"split\0{digest}".encode()).digest()[:8], "big") / _WHOLE


def split_at(place: float, *, validation: float, test: float) -> str:
    if place < test:
        return TEST
    return VALIDATION if place < test + validation else TRAIN


class SplitAssigner:
    """Problems in the order in which they came: first those that sit, then newcomers."""

    def __init__(self) -> None:
        self._digests: list[str] = []
        self._signatures = bytearray()
        self._low, self._high = array("d"), array("d")

    def add(self, digest: str, signature: bytes, seat: SplitInterval | None = None) -> None:
        """`digest` is that of the normal text: writings of one problem sit together whatever their words look like."""
        self._digests.append(digest)
        self._signatures += signature
        if seat is not None:
            self._low.append(seat.low)
            self._high.append(seat.high)

    @property
    def n_seated(self) -> int:
        return len(self._low)

    def decide(self) -> Iterator[SplitInterval | None]:
        """A seat for each newcomer, in order; nothing, as a sign of life, where that takes time."""
        signatures = np.frombuffer(bytes(self._signatures), dtype=np.uint32).reshape(-1, SLOTS)
        elders = EarlierTexts(signatures)
        for _ in elders.sort():
            yield None
        firsts: dict[str, int] = {}
        for number, digest in enumerate(self._digests):
            first = firsts.setdefault(digest, number)
            if number >= self.n_seated:
                like = [int(each) for each in elders.alike(number)]
                yield self._sit(digest, [first, *like] if first < number else like)

    def _sit(self, digest: str, like: list[int]) -> SplitInterval:
        """The smallest stretch that meets those of all it is like: where two stretches meet, and each of them lies on
        one side, both lie on the same."""
        own = split_position(digest)
        highest = max((self._low[each] for each in like), default=own)
        lowest = min((self._high[each] for each in like), default=own)
        seat = SplitInterval(min(lowest, highest), highest)
        self._low.append(seat.low)
        self._high.append(seat.high)
        return seat
