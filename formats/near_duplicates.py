"""Find texts that are nearly the same, with MinHash and bands.

A text is represented by the set of its runs of three words. The share of slots in which two signatures agree estimates
the Jaccard similarity of the sets: A. Broder, "On the resemblance and containment of documents", Proc. Compression and
Complexity of Sequences (1997), pp. 21-29, doi:10.1109/SEQUEN.1997.666900. Texts that agree in all rows of one band are
compared, which finds a pair of similarity s with probability 1 - (1 - s^rows)^bands: J. Leskovec, A. Rajaraman and
J. Ullman, "Mining of Massive Datasets", 3rd ed. (2020), section 3.4.

The hash functions are fixed, so the same texts always give the same groups. A text takes 256 bytes.
"""

import re
import unicodedata
import zlib
from collections.abc import Hashable, Iterator
from itertools import combinations, pairwise
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

SLOTS = 64
BANDS = 16  # of 4 rows: a pair of similarity 0.7 is compared with probability 0.988, one of 0.3 with 0.12
THRESHOLD = 0.7
_RUN = 3
_ALL_PAIRS = 40  # texts in a bucket; in a larger bucket, each text is compared with the first and the next one only
MAX_SHARING = 128  # earlier texts in a bucket; of more, the first and last 64 are compared
_WORD = re.compile(r"\w+")
_random = np.random.default_rng(20261118)
_FACTORS = _random.integers(0, 1 << 63, SLOTS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_SHIFTS = _random.integers(0, 1 << 63, SLOTS, dtype=np.uint64)
_HIGH = np.uint64(32)

Signature = NDArray[np.uint32]
_K = TypeVar("_K", bound=Hashable)


def compute_signature(text: str) -> Signature:
    """Return the 64 hash minima of a text. Two signatures agree in about the share of runs that the texts share."""
    runs = np.array([zlib.crc32(run.encode()) for run in _runs(text)], dtype=np.uint64)
    # Multiply-shift hashing: the product wraps around at 2^64, and its high half is kept.
    mixed = (_FACTORS[:, None] * runs[None, :] + _SHIFTS[:, None]) >> _HIGH
    lowest: Signature = mixed.min(axis=1).astype(np.uint32)
    return lowest


def estimate_similarity(one: Signature, other: Signature) -> float:
    """Return the estimated Jaccard similarity of two texts, between 0 and 1."""
    return float(np.count_nonzero(one == other)) / SLOTS


class TextCollection(Generic[_K]):
    """A set of named texts that can be grouped by similarity."""

    def __init__(self) -> None:
        self._names: list[_K] = []
        self._signatures = bytearray()

    def add(self, name: _K, text: str) -> None:
        self._names.append(name)
        self._signatures += compute_signature(text).tobytes()

    def groups(self, *, threshold: float = THRESHOLD) -> dict[_K, _K]:
        """Map each name to the first name of its group. A text joins a group if it is similar to any member."""
        names = self._names
        signatures = np.frombuffer(bytes(self._signatures), dtype=np.uint32).reshape(len(names), SLOTS)
        firsts = list(range(len(names)))
        for one, other in _candidates(signatures):
            first, second = sorted((_first(firsts, one), _first(firsts, other)))
            if first != second and estimate_similarity(signatures[one], signatures[other]) >= threshold:
                firsts[second] = first
        return {name: names[_first(firsts, number)] for number, name in enumerate(names)}


class EarlierTexts:
    """Find the earlier texts that a text is similar to. Later texts never change the result."""

    def __init__(self, signatures: NDArray[np.uint32], *, threshold: float = THRESHOLD) -> None:
        self._signatures = signatures
        self._needed = threshold * SLOTS
        self._orders = np.empty((BANDS, len(signatures)), dtype=np.int32)
        # By text and band: the start of its bucket in the order, and its own position.
        self._starts = np.empty((len(signatures), BANDS), dtype=np.int32)
        self._ranks = np.empty((len(signatures), BANDS), dtype=np.int32)

    def sort(self) -> Iterator[int]:
        """Sort the texts into buckets; required before `alike`. Yields the number of bands done after each."""
        numbers = np.arange(len(self._signatures), dtype=np.int32)
        for band in range(BANDS):
            keys = _keys(self._signatures, band)
            order = np.argsort(keys, kind="stable")
            begins = np.append(True, keys[order][1:] != keys[order][:-1])[: len(keys)]
            self._orders[band] = order
            self._starts[order, band] = np.maximum.accumulate(np.where(begins, numbers, 0))
            self._ranks[order, band] = numbers
            yield band + 1

    def alike(self, number: int) -> NDArray[np.int32]:
        """Return the numbers of the earlier texts that are similar to this one."""
        shared = np.flatnonzero(self._starts[number] < self._ranks[number])
        buckets = [self._sharing(int(band), number) for band in shared]
        if not buckets:
            return np.empty(0, dtype=np.int32)
        candidates = np.unique(np.concatenate(buckets))
        agreeing = np.count_nonzero(self._signatures[candidates] == self._signatures[number], axis=1)
        alike: NDArray[np.int32] = candidates[agreeing >= self._needed]
        return alike

    def _sharing(self, band: int, number: int) -> NDArray[np.int32]:
        earlier = self._orders[band, self._starts[number, band] : self._ranks[number, band]]
        if len(earlier) <= MAX_SHARING:
            return earlier
        return np.concatenate([earlier[: MAX_SHARING // 2], earlier[-MAX_SHARING // 2 :]])


def _runs(text: str) -> set[str]:
    words = _WORD.findall(unicodedata.normalize("NFKC", text).lower())
    if len(words) <= _RUN:
        return {" ".join(words)}
    return {" ".join(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1)}


def _candidates(signatures: NDArray[np.uint32]) -> Iterator[tuple[int, int]]:
    """Yield the pairs that agree in all rows of a band."""
    for band in range(BANDS):
        keys = _keys(signatures, band)
        order = np.argsort(keys, kind="stable")
        ends = np.flatnonzero(keys[order][1:] != keys[order][:-1]) + 1
        for bucket in np.split(order, ends):
            if len(bucket) > 1:
                yield from _pairs([int(number) for number in bucket])


def _keys(signatures: NDArray[np.uint32], band: int) -> NDArray[np.void]:
    """Return the rows of a band as one value per text."""
    rows = SLOTS // BANDS
    part = np.ascontiguousarray(signatures[:, band * rows : (band + 1) * rows])
    return part.view(np.dtype((np.void, part.dtype.itemsize * rows))).ravel()


def _pairs(bucket: list[int]) -> Iterator[tuple[int, int]]:
    if len(bucket) <= _ALL_PAIRS:
        yield from combinations(bucket, 2)
        return
    yield from pairwise(bucket)
    yield from ((bucket[0], number) for number in bucket[2:])


def _first(firsts: list[int], number: int) -> int:
    while firsts[number] != number:
        firsts[number] = firsts[firsts[number]]
        number = firsts[number]
    return number
