"""Does a PRM's training set hold the problems that it is judged on?

    equal        the same text after NFKC, lower case, letters and digits only
    overlapping  at least half of the 13-word runs of the judged problem occur in one training problem; shorter problems
                 count as one run

13-grams as in T. Brown et al. (2020), "Language models are few-shot learners", arXiv:2005.14165, appendix C.
"""

import enum
import hashlib
import unicodedata
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from stats.arrays import Ints

RUN = 13
_OVERLAP = 0.5


class ContaminationKind(enum.StrEnum):
    EQUAL = "equal"
    OVERLAPPING = "overlapping"


@dataclass(frozen=True)
class ContaminatedProblems:
    """Places of judged problems that the training set holds, and how."""

    equal: list[int]
    overlapping: list[int]

    @property
    def n(self) -> int:
        return len(self.equal) + len(self.overlapping)


def normal_text_digest(problem: str) -> str:
    """The first 32 hex digits of sha256 of the normal text, as public lists of benchmark problems write it."""
    return hashlib.sha256("".join(filter(str.isalnum, _folded(problem))).encode()).hexdigest()[:32]


def find_contaminated(*, training: Iterable[str], judged: Iterable[str]) -> ContaminatedProblems:
    """Every judged problem is told once: as equal where it is, else as overlapping."""
    learnt, found = TrainingProblems(training), ContaminatedProblems([], [])
    for n, problem in enumerate(judged):
        if (how := learnt.holds(problem)) is not None:
            (found.equal if how is ContaminationKind.EQUAL else found.overlapping).append(n)
    return found


def find_leaking_problems(*, training: Sequence[str], judged: Sequence[str]) -> list[int]:
    """Places of the training problems that give a judged one away: without them `find` finds nothing."""
    known = {normal_text_digest(problem) for problem in judged}
    equal = {n for n, problem in enumerate(training) if normal_text_digest(problem) in known}
    runs = [set(_runs(problem)) for problem in judged]
    holders = _holders(training, wanted=set().union(*runs))
    for each in runs:
        held = Counter(n for run in each for n in holders.get(run, ()))
        equal |= {n for n, shared in held.items() if shared >= _OVERLAP * max(len(each), 1)}
    return sorted(equal)


def find_listed_problems(*, problems: Iterable[str], digests: Iterable[str]) -> list[int]:
    """Places of the problems that stand on a list of digests."""
    known = set(digests)
    return [n for n, problem in enumerate(problems) if normal_text_digest(problem) in known]


def _holders(training: Sequence[str], *, wanted: set[int]) -> dict[int, set[int]]:
    """Which training problems hold each of the wanted runs."""
    found: defaultdict[int, set[int]] = defaultdict(set)
    for n, problem in enumerate(training):
        for run in wanted.intersection(_runs(problem)):
            found[run].add(n)
    return found


def _runs(problem: str) -> Iterator[int]:
    """Numbers that stand for the runs of thirteen words."""
    words = "".join(c if c.isalnum() else " " for c in _folded(problem)).split()
    for start in range(max(len(words) - RUN, 0) + 1):
        run = " ".join(words[start : start + RUN])
        if run:
            yield int.from_bytes(hashlib.blake2b(run.encode(), digest_size=8).digest(), "big")


def _folded(problem: str) -> str:
    return unicodedata.normalize("NFKC", problem).lower()


class TrainingProblems:
    """The problems of a training set, to hold judged ones against one after the other: memory is theirs alone."""

    def __init__(self, problems: Iterable[str]) -> None:
        self._digests: set[str] = set()
        runs, holders = array("Q"), array("q")
        for n, problem in enumerate(problems):
            self._digests.add(normal_text_digest(problem))
            of_problem = set(_runs(problem))
            runs.extend(of_problem)
            holders.extend([n] * len(of_problem))
        order = np.argsort(np.array(runs, dtype=np.uint64), kind="stable")
        self._runs = np.array(runs, dtype=np.uint64)[order]
        self._holders: Ints = np.array(holders, dtype=np.int64)[order]

    def holds(self, problem: str) -> ContaminationKind | None:
        """How this judged problem is among them, None where it is not."""
        if normal_text_digest(problem) in self._digests:
            return ContaminationKind.EQUAL
        wanted = np.array(sorted(set(_runs(problem))), dtype=np.uint64)
        starts, ends = np.searchsorted(self._runs, wanted), np.searchsorted(self._runs, wanted, side="right")
        held = [self._holders[start:end] for start, end in zip(starts, ends, strict=True) if end > start]
        if not held:
            return None
        shared = int(np.unique(np.concatenate(held), return_counts=True)[1].max())
        return ContaminationKind.OVERLAPPING if shared >= _OVERLAP * len(wanted) else None


class JudgedProblems:
    """The problems that judge, to be held against one training problem after the other: memory is theirs alone."""

    def __init__(self) -> None:
        self._texts: list[tuple[str, int]] = []  # normal digest, number of runs
        self._holders: defaultdict[int, list[int]] = defaultdict(list)

    def add(self, digest: str, problem: str) -> None:
        runs = set(_runs(problem))
        for run in runs:
            self._holders[run].append(len(self._texts))
        self._texts.append((digest, len(runs)))

    def holds(self, problem: str, digest: str) -> bool:
        """Whether this training problem, of which that is the normal digest, holds half of the runs of another one."""
        shared = Counter(n for run in set(_runs(problem)) for n in self._holders.get(run, ()))
        return any(count >= _OVERLAP * self._texts[n][1] for n, count in shared.items() if self._texts[n][0] != digest)
