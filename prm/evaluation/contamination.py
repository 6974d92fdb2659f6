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
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from stats.arrays import Ints

_RUN_WORDS = 13
_OVERLAP = 0.5


class ContaminationKind(enum.StrEnum):
    EQUAL = "equal"
    OVERLAPPING = "overlapping"


def normal_text_digest(problem: str) -> str:
    """Return the first 32 hex digits of the sha256 of the normalized text, as in public lists of benchmark problems."""
    return hashlib.sha256("".join(filter(str.isalnum, _folded(problem))).encode()).hexdigest()[:32]


def find_leaking_problems(*, training: Sequence[str], judged: Sequence[str]) -> list[int]:
    """Return the indexes of the training problems that must go so that `TrainingProblems` matches no evaluated one."""
    known = {normal_text_digest(problem) for problem in judged}
    leaking = {n for n, problem in enumerate(training) if normal_text_digest(problem) in known}
    judged_runs = [set(_runs(problem)) for problem in judged]
    wanted = set().union(*judged_runs)
    holders: defaultdict[int, set[int]] = defaultdict(set)
    for n, problem in enumerate(training):
        for run in wanted.intersection(_runs(problem)):
            holders[run].add(n)
    for runs in judged_runs:
        shared = Counter(n for run in runs for n in holders.get(run, ()))
        leaking |= {n for n, count in shared.items() if count >= _OVERLAP * max(len(runs), 1)}
    return sorted(leaking)


def _runs(problem: str) -> Iterator[int]:
    """Yield a hash of each run of thirteen words."""
    words = "".join(c if c.isalnum() else " " for c in _folded(problem)).split()
    for start in range(max(len(words) - _RUN_WORDS, 0) + 1):
        run = " ".join(words[start : start + _RUN_WORDS])
        if run:
            yield int.from_bytes(hashlib.blake2b(run.encode(), digest_size=8).digest(), "big")


def _folded(problem: str) -> str:
    return unicodedata.normalize("NFKC", problem).lower()


class TrainingProblems:
    """The problems of a training set, indexed so that evaluated problems can be streamed past them."""

    def __init__(self, problems: Iterable[str]) -> None:
        self._digests: set[str] = set()
        runs, holders = array("Q"), array("q")
        for n, problem in enumerate(problems):
            self._digests.add(normal_text_digest(problem))
            problem_runs = set(_runs(problem))
            runs.extend(problem_runs)
            holders.extend([n] * len(problem_runs))
        order = np.argsort(np.array(runs, dtype=np.uint64), kind="stable")
        self._runs = np.array(runs, dtype=np.uint64)[order]
        self._holders: Ints = np.array(holders, dtype=np.int64)[order]

    def holds(self, problem: str) -> ContaminationKind | None:
        """Return how the training set contains this evaluated problem, None if it does not."""
        if normal_text_digest(problem) in self._digests:
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
        self._texts: list[tuple[str, int]] = []  # normal digest, number of runs
        self._holders: defaultdict[int, list[int]] = defaultdict(list)

    def add(self, digest: str, problem: str) -> None:
        runs = set(_runs(problem))
        for run in runs:
            self._holders[run].append(len(self._texts))
        self._texts.append((digest, len(runs)))

    def holds(self, problem: str, digest: str) -> bool:
        """Return whether this training problem contains half of the runs of a problem with another normal digest."""
        shared = Counter(n for run in set(_runs(problem)) for n in self._holders.get(run, ()))
        return any(count >= _OVERLAP * self._texts[n][1] for n, count in shared.items() if self._texts[n][0] != digest)
