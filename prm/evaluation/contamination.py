"""Does a PRM's training set contain the problems that it is evaluated on?

    equal        the same text after NFKC, lower case, letters and digits only
    overlapping  one training problem contains at least half of the 13-word runs of the evaluated problem; a shorter
                 problem counts as one run

13-grams as in T. Brown et al. (2020), "Language models are few-shot learners", arXiv:2005.14165, appendix C.
"""

import enum
import hashlib
import unicodedata
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from formats import near_duplicates
from stats.arrays import Ints

_RUN_WORDS = 13
_OVERLAP = 0.5


class ContaminationKind(enum.StrEnum):
    EQUAL = "equal"
    OVERLAPPING = "overlapping"


def _runs(problem: str) -> Iterator[int]:
    """Yield a hash of each run of thirteen words."""
    folded = unicodedata.normalize("NFKC", problem).lower()
    words = "".join(c if c.isalnum() else " " for c in folded).split()
    for start in range(max(len(words) - _RUN_WORDS, 0) + 1):
        run = " ".join(words[start : start + _RUN_WORDS])
        if run:
            yield int.from_bytes(hashlib.blake2b(run.encode(), digest_size=8).digest(), "big")


class TrainingProblems:
    """The problems of a training set, indexed so that evaluated problems can be streamed past them."""

    def __init__(self, problems: Iterable[str]) -> None:
        self._digests: set[str] = set()
        runs, holders = array("Q"), array("q")
        for n, problem in enumerate(problems):
            self._digests.add(near_duplicates.digest_normalized(problem))
            problem_runs = set(_runs(problem))
            runs.extend(problem_runs)
            holders.extend([n] * len(problem_runs))
        order = np.argsort(np.array(runs, dtype=np.uint64), kind="stable")
        self._runs = np.array(runs, dtype=np.uint64)[order]
        self._holders: Ints = np.array(holders, dtype=np.int64)[order]

    def holds(self, problem: str) -> ContaminationKind | None:
        """Return how the training set contains this evaluated problem, None if it does not."""
        if near_duplicates.digest_normalized(problem) in self._digests:
            return ContaminationKind.EQUAL
        wanted = np.array(sorted(set(_runs(problem))), dtype=np.uint64)
        starts, ends = np.searchsorted(self._runs, wanted), np.searchsorted(self._runs, wanted, side="right")
        matches = [self._holders[start:end] for start, end in zip(starts, ends, strict=True) if end > start]
        if not matches:
            return None
        shared = int(np.unique(np.concatenate(matches), return_counts=True)[1].max())
        return ContaminationKind.OVERLAPPING if shared >= _OVERLAP * len(wanted) else None


class JudgedProblems:
    """The evaluated problems, indexed so that training problems can be streamed past them."""

    def __init__(self) -> None:
        self.digests: set[str] = set()
        self._texts: list[tuple[str, int]] = []  # normal digest, number of runs
        self._holders: defaultdict[int, list[int]] = defaultdict(list)

    def add(self, digest: str, problem: str) -> None:
        self.digests.add(digest)
        runs = set(_runs(problem))
        for run in runs:
            self._holders[run].append(len(self._texts))
        self._texts.append((digest, len(runs)))

    def holds(self, problem: str, digest: str) -> bool:
        """Return whether this training problem contains half of the runs of a problem with another normal digest."""
        shared = Counter(n for run in set(_runs(problem)) for n in self._holders.get(run, ()))
        return any(count >= _OVERLAP * self._texts[n][1] for n, count in shared.items() if self._texts[n][0] != digest)
