"""How problems are assigned to train, validation, and test. Only this module writes `SplitAssignment`.

A problem's position in [0, 1) is a hash of its text, and the splits are intervals of [0, 1). So a problem stays in its
split when the dataset grows. A problem that is nearly the same as earlier ones takes their position. If it resembles
earlier problems at several positions, it gets an interval. If the shares of a snapshot cut through that interval, the
problem is left out (reason `astride`) and the earlier ones stay.

Assignments are made in the order of arrival, each from the ones before it, and are never changed. They remain when an
import is undone, so importing the file again restores the same splits.
"""

import datetime as dt
import hashlib
from array import array
from collections.abc import Generator, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef

from exports.models import SplitAssignment
from formats import near_duplicates
from formats.near_duplicates import SLOTS, EarlierTexts
from jobs import paging
from jobs.runner import Chunk, JobProgress
from labeling.models import Problem, Project

TRAIN, VALIDATION, TEST = "train", "validation", "test"
_WHOLE = 1 << 64
_HEARTBEAT = JobProgress(0)
_BATCH_SIZE = 2000  # assignments in one transaction


def split_position(digest: str) -> float:
    """Return a number in [0, 1). It is independent of the hash that chooses held-out problems, which would otherwise
    empty one of the splits."""
    return int.from_bytes(hashlib.sha256(f"split\0{digest}".encode()).digest()[:8], "big") / _WHOLE


def split_at(position: float, *, validation: float, test: float) -> str:
    if position < test:
        return TEST
    return VALIDATION if position < test + validation else TRAIN


def choose_split(digest: str, positions: Mapping[str, float], *, validation: float, test: float) -> str:
    """Return the split of a problem. `positions` has the problems that take the position of an earlier one."""
    position = positions.get(digest)
    return split_at(split_position(digest) if position is None else position, validation=validation, test=test)


class SplitInterval(NamedTuple):
    """A closed interval of [0, 1); a single point for most problems."""

    low: float
    high: float

    def split(self, *, validation: float, test: float) -> str | None:
        """Return the split that contains the interval, or None if it spans several."""
        low, high = (split_at(end, validation=validation, test=test) for end in self)
        return low if low == high else None


class SplitAssigner:
    """Computes intervals. Add the problems that have one first, then the new ones in the order of arrival."""

    def __init__(self) -> None:
        self._digests: list[str] = []
        self._signatures = bytearray()
        self._low, self._high = array("d"), array("d")

    def add(self, digest: str, signature: bytes, interval: SplitInterval | None = None) -> None:
        """Add a problem. `digest` is the digest of its normalized text: spellings of one problem always share an
        interval."""
        self._digests.append(digest)
        self._signatures += signature
        if interval is not None:
            self._append(interval)

    @property
    def n_assigned(self) -> int:
        return len(self._low)

    def assign(self) -> Iterator[SplitInterval | None]:
        """Yield the interval of each new problem in order, and None as a heartbeat during long preparation."""
        signatures = np.frombuffer(bytes(self._signatures), dtype=np.uint32).reshape(-1, SLOTS)
        earlier = EarlierTexts(signatures)
        for _ in earlier.sort():
            yield None
        first_by_digest: dict[str, int] = {}
        for number, digest in enumerate(self._digests):
            first = first_by_digest.setdefault(digest, number)
            if number >= self.n_assigned:
                similar = [int(each) for each in earlier.alike(number)]
                yield self._assign_one(digest, [first, *similar] if first < number else similar)

    def _assign_one(self, digest: str, similar: list[int]) -> SplitInterval:
        """Choose the smallest interval that meets the intervals of all similar problems. Two intervals that meet, each
        inside one split, are inside the same split; so similar problems never end up in different splits."""
        own = split_position(digest)
        highest = max((self._low[each] for each in similar), default=own)
        lowest = min((self._high[each] for each in similar), default=own)
        return self._append(SplitInterval(min(lowest, highest), highest))

    def _append(self, interval: SplitInterval) -> SplitInterval:
        self._low.append(interval.low)
        self._high.append(interval.high)
        return interval


# --- stored assignments ----------------------------------------------------------------------------------------------


def assign_splits(project: Project) -> Iterator[JobProgress | Chunk]:
    """Assign every problem of the project. Start over if another snapshot saves assignments in the meantime."""
    is_done = False
    while not is_done:
        is_done = yield from _assign_new(project)


def _assign_new(project: Project) -> Generator[JobProgress | Chunk, None, bool]:
    """Assign the new problems in batches. Return False if another snapshot saved the same numbers first."""
    assigner, new, conflicts = SplitAssigner(), list[SplitAssignment](), list[IntegrityError]()
    yield from _load_problems(project, assigner, new)
    if not new:
        return True
    rows, batch = iter(new), list[SplitAssignment]()
    for interval in assigner.assign():
        if interval is None:
            yield _HEARTBEAT
            continue
        row = next(rows)
        row.low, row.high = interval
        batch.append(row)
        if len(batch) == _BATCH_SIZE or row is new[-1]:
            yield partial(_save_assignments, batch, conflicts)
            if conflicts:
                return False
            batch = []
    return True


def _load_problems(project: Project, assigner: SplitAssigner, new: list[SplitAssignment]) -> Iterator[JobProgress]:
    """Load the stored assignments, then the texts of the new problems."""
    stored = SplitAssignment.objects.filter(project=project)
    rows = paging.iterate_by_key(stored, "normal_digest", "signature", "low", "high")
    for n, (_, digest, signature, low, high) in enumerate(rows):
        assigner.add(digest, bytes(signature), SplitInterval(low, high))
        if n % paging.PAGE_SIZE == 0:
            yield _HEARTBEAT
    unassigned = Problem.objects.filter(~Exists(stored.filter(digest=OuterRef("digest"))), project=project)
    problems = paging.iterate_by_key(unassigned, "digest", "normal_digest", "text")
    for number, (_, digest, normal, text) in enumerate(problems, start=assigner.n_assigned):
        row = SplitAssignment(project=project, number=number, digest=digest, normal_digest=normal)
        row.signature = near_duplicates.compute_signature(text).tobytes()
        assigner.add(normal, row.signature)
        new.append(row)
        if number % paging.PAGE_SIZE == 0:
            yield _HEARTBEAT


def _save_assignments(batch: list[SplitAssignment], conflicts: list[IntegrityError], now: dt.datetime) -> JobProgress:
    """Save all of them or none: two snapshots that assign at the same time use the same numbers."""
    for row in batch:
        row.decided_at = now
    try:
        with transaction.atomic():
            SplitAssignment.objects.bulk_create(batch)
    except IntegrityError as error:
        conflicts.append(error)
    return _HEARTBEAT


class SplitScan(NamedTuple):
    """The stored assignments under the shares of one snapshot."""

    conflicting: list[str]  # digests of problems whose interval spans several splits
    positions: dict[str, float]  # by normal digest, of problems that take the position of an earlier one


def scan_assignments(project: Project, *, validation: float, test: float) -> Generator[JobProgress, None, SplitScan]:
    scan = SplitScan([], {})
    stored = SplitAssignment.objects.filter(project=project)
    rows = paging.iterate_by_key(stored, "digest", "normal_digest", "low", "high")
    for n, (_, digest, normal, low, high) in enumerate(rows):
        if SplitInterval(low, high).split(validation=validation, test=test) is None:
            scan.conflicting.append(digest)
        elif low != split_position(normal):
            scan.positions[normal] = low
        if n % paging.PAGE_SIZE == 0:
            yield _HEARTBEAT
    return scan
