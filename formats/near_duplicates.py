"""Find texts that are nearly the same, with MinHash and bands.

A text is represented by the set of its runs of three words. The share of slots in which two signatures agree estimates
the Jaccard similarity of the sets: A. Broder, "On the resemblance and containment of documents", Proc. Compression and
Complexity of Sequences (1997), pp. 21-29, doi:10.1109/SEQUEN.1997.666900. Texts that agree in all rows of one band are
compared, which finds a pair of similarity s with probability 1 - (1 - s^rows)^bands: J. Leskovec, A. Rajaraman and
J. Ullman, "Mining of Massive Datasets", 3rd ed. (2020), section 3.4.

The hash functions are fixed, so the same texts always give the same groups. A text takes 256 bytes.
"""

import hashlib
import itertools
import re
import unicodedata
from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

LISTED_DIGITS = 32  # hex digits of a normalized text's digest in the lists of benchmark problems
SLOTS = 64
BANDS = 16  # of 4 rows: a pair of similarity 0.7 is compared with probability 0.988, one of 0.3 with 0.12
THRESHOLD = 0.7
_RUN = 3
MAX_SHARING = 128  # earlier texts in a bucket; of more, the first and last 64 are compared
_WORD = re.compile(r"\w+")
_random = np.random.default_rng(20261118)
_FACTORS = _random.integers(0, 1 << 63, SLOTS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_SHIFTS = _random.integers(0, 1 << 63, SLOTS, dtype=np.uint64)
_PLACES = _random.integers(0, 1 << 63, _RUN, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_HIGH = np.uint64(32)
_SLOTS_AT_ONCE = [slice(first, first + 8) for first in range(0, SLOTS, 8)]  # all at once do not fit into the cache

Signature = NDArray[np.uint32]
_K = TypeVar("_K", bound=Hashable)


def compute_signature(text: str) -> Signature:
    """Return the 64 hash minima of a text. Two signatures agree in about the share of runs that the texts share."""
    only: Signature = compute_signatures([text])[0]
    return only


def compute_signatures(texts: Sequence[str]) -> NDArray[np.uint32]:
    """Return the signatures of texts, one row per text. For many texts, this takes half the time per text."""
    words = [_hash_words(text) for text in texts]
    lengths = np.array([len(each) for each in words])
    hashes = np.array(list(itertools.chain.from_iterable(words)), dtype=np.uint64)
    # A run is the sum of its words' hashes, each times the factor of its place. A run beyond a text does not count.
    runs = sum(hashes[place : len(hashes) - _RUN + 1 + place] * factor for place, factor in enumerate(_PLACES)) >> _HIGH
    ends = np.cumsum(lengths)
    is_run = np.ones(len(hashes), dtype=bool)
    for place in range(1, _RUN):
        is_run[ends - place] = False
    runs = runs[is_run[: len(runs)]]
    starts = np.append(0, np.cumsum(lengths - _RUN + 1))[:-1]
    # Multiply-shift hashing: the product wraps around at 2^64, and its high half is kept. The smallest product has the
    # smallest high half, so only the smallest is shifted.
    minima = np.empty((SLOTS, len(texts)), dtype=np.uint64)
    for slots in _SLOTS_AT_ONCE:
        mixed = _FACTORS[slots, None] * runs
        mixed += _SHIFTS[slots, None]
        np.minimum.reduceat(mixed, starts, axis=1, out=minima[slots])
    return np.ascontiguousarray((minima >> _HIGH).T.astype(np.uint32))


def _hash_words(text: str) -> list[int]:
    """Return the hashes of the words of a text. A short text is padded, so that it has one run."""
    normal = text if text.isascii() else unicodedata.normalize("NFKC", text)
    words = [_hash_word(word) for word in _WORD.findall(normal.lower())]
    return words if len(words) >= _RUN else words + [0] * (_RUN - len(words))


@lru_cache(maxsize=50_000)  # most words of a text are common
def _hash_word(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest())


class TextCollection(Generic[_K]):
    """A set of named texts that can be grouped by similarity."""

    def __init__(self) -> None:
        self._numbers: dict[_K, int] = {}  # of the signature of each text, in the order of `_signatures`
        self._known: dict[bytes, int] = {}  # numbers by a digest of the signature: shorter, and never equal by chance
        self._firsts: list[_K] = []  # the first text with each signature
        self._signatures = bytearray()

    def add(self, texts: Mapping[_K, str]) -> None:
        """Add texts by name, ideally a few hundred at a time."""
        signatures = compute_signatures(list(texts.values())) if texts else ()
        for name, signature in zip(texts, signatures, strict=True):
            content = signature.tobytes()
            digest = hashlib.blake2b(content, digest_size=16).digest()
            if digest not in self._known:
                self._known[digest] = len(self._firsts)
                self._firsts.append(name)
                self._signatures += content
            self._numbers[name] = self._known[digest]

    def groups(self) -> dict[_K, _K]:
        """Map each name to the first name of its group. A text joins a group if it is similar to any member."""
        earlier = EarlierTexts(np.frombuffer(self._signatures, dtype=np.uint32).reshape(-1, SLOTS))
        deque(earlier.sort(), maxlen=0)
        firsts = np.arange(len(self._firsts))
        for number in earlier.sharing_a_bucket():
            for other in np.unique(firsts[earlier.alike(number)]):
                first, second = sorted((_first(firsts, number), _first(firsts, other)))
                firsts[second] = first
            firsts[number] = _first(firsts, number)
        return {name: self._firsts[_first(firsts, number)] for name, number in self._numbers.items()}


class EarlierTexts:
    """Find the earlier texts that a text is similar to. Later texts never change the result."""

    def __init__(self, signatures: NDArray[np.uint32]) -> None:
        self._signatures = signatures
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

    def sharing_a_bucket(self) -> list[int]:
        """Return the numbers of the texts that may be similar to an earlier one."""
        numbers: list[int] = np.flatnonzero((self._starts < self._ranks).any(axis=1)).tolist()
        return numbers

    def alike(self, number: int) -> NDArray[np.int32]:
        """Return the numbers of the earlier texts that are similar to this one."""
        shared = np.flatnonzero(self._starts[number] < self._ranks[number])
        buckets = [self._sharing(int(band), number) for band in shared]
        if not buckets:
            return np.empty(0, dtype=np.int32)
        candidates = np.unique(np.concatenate(buckets))
        agreeing = np.count_nonzero(self._signatures[candidates] == self._signatures[number], axis=1)
        alike: NDArray[np.int32] = candidates[agreeing >= THRESHOLD * SLOTS]
        return alike

    def _sharing(self, band: int, number: int) -> NDArray[np.int32]:
        earlier = self._orders[band, self._starts[number, band] : self._ranks[number, band]]
        if len(earlier) <= MAX_SHARING:
            return earlier
        return np.concatenate([earlier[: MAX_SHARING // 2], earlier[-MAX_SHARING // 2 :]])


def _keys(signatures: NDArray[np.uint32], band: int) -> NDArray[np.void]:
    """Return the rows of a band as one value per text."""
    rows = SLOTS // BANDS
    part = np.ascontiguousarray(signatures[:, band * rows : (band + 1) * rows])
    return part.view(np.dtype((np.void, part.dtype.itemsize * rows))).ravel()


def _first(firsts: NDArray[np.intp], number: int) -> int:
    while firsts[number] != number:
        firsts[number] = firsts[firsts[number]]
        number = firsts[number]
    return number


def normalize_text(text: str) -> str:
    """Keep letters and digits only, in lower case."""
    if text.isascii():
        return text.translate(_NOT_ALPHANUMERIC).lower()
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).lower()))


_NOT_ALPHANUMERIC = {code: None for code in range(128) if not chr(code).isalnum()}


def digest_normalized(text: str) -> str:
    """Return the SHA-256 of the normalized text as 64 hex digits."""
    return hashlib.sha256(normalize_text(text).encode()).hexdigest()
