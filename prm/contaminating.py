"""Has a PRM been trained on problems that judge: those of reserves, of gold, of canaries, of the lists of benchmarks?
Reads alone.

Problems are held against each other by normalised text and by runs of thirteen words (`prm.evaluation.contamination`).
Lists of benchmarks that ship with the code hold digests and no texts: where no project has the text either, the
normalised text is all that can be compared, and how many these are is told.
"""

from collections.abc import Generator
from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import QuerySet

from jobs import paging
from labeling import benchmarks
from labeling.models import Gold, Problem, Project
from labeling.models.quality import GoldUse
from prm import cleaning, packing
from prm.evaluation.contamination import How, Learnt
from prm.models import PRM

_CHUNK = 500
BENCHMARK = "benchmark"


@dataclass
class Judges:
    """Problems of one kind that judge, and how many of them the training set holds."""

    kind: str
    name: str = ""  # of a list
    n: int = 0
    n_by_digest: int = 0  # whose texts nobody here has
    n_equal: int = 0
    n_overlapping: int = 0

    def note(self, how: How | None) -> None:
        self.n_equal += how is How.EQUAL
        self.n_overlapping += how is How.OVERLAPPING


def look(prm: PRM) -> Generator[int, None, dict[str, Any]]:
    """What an audit keeps. Yields how many problems were looked at, as signs of life."""
    if prm.trained is None:
        return {"is_stated": False, "n_problems": None, "judges": []}
    texts = [text for _, text in cleaning.problems_of(packing.unpack_ids(bytes(prm.trained)))]
    yield 0
    learnt, found = Learnt(texts), []
    for kind, problems in _judging(prm.project).items():
        judges = Judges(kind)
        yield from _hold(problems, judges, learnt)
        found.append(judges)
    found += yield from _lists(learnt)
    return {"is_stated": True, "n_problems": len(texts), "judges": [asdict(each) for each in found]}


def _judging(project: Project) -> dict[str, QuerySet[Problem]]:
    """Reserve, gold and canaries: those that figures here rest on, then those of other projects."""
    reserve, gold = Problem.objects.filter(is_reserve=True), Gold.objects.exclude(use=GoldUse.CANARY)
    canaries = Gold.objects.filter(use=GoldUse.CANARY)
    return {
        "reserve": reserve.filter(project=project),
        "gold": _problems(gold.filter(trace__project=project)),
        "canary": _problems(canaries),
        "other_reserve": reserve.exclude(project=project),
        "other_gold": _problems(gold.exclude(trace__project=project)),
    }


def _problems(gold: QuerySet[Gold]) -> QuerySet[Problem]:
    return Problem.objects.filter(pk__in=gold.values("trace__problem"))


def _hold(problems: QuerySet[Problem], judges: Judges, learnt: Learnt) -> Generator[int, None, None]:
    """One problem may be in several projects: it counts once."""
    seen: set[str] = set()
    for _, digest, text in paging.by_key(problems, "normal_digest", "text", size=_CHUNK):
        if digest not in seen:
            seen.add(digest)
            judges.note(learnt.holds(text))
            if len(seen) % _CHUNK == 0:
                yield len(seen)
    judges.n = len(seen)


def _lists(learnt: Learnt) -> Generator[int, None, list[Judges]]:
    """One entry a list, in the order of names."""
    found = {name: Judges(BENCHMARK, name, n, n) for name, n in sorted(benchmarks.sizes().items())}
    seen: set[str] = set()
    part: dict[str, str] = {}
    for _, digest, text in paging.by_key(benchmarks.with_texts(), "normal_digest", "text", size=_CHUNK):
        if digest not in seen:
            seen.add(digest)
            part[digest] = text
        if len(part) == _CHUNK:
            _note_listed(part, found, learnt)
            yield len(seen)
            part = {}
    _note_listed(part, found, learnt)
    return list(found.values())


def _note_listed(part: dict[str, str], found: dict[str, Judges], learnt: Learnt) -> None:
    for digest, names in benchmarks.lists_of(part).items():
        how = learnt.holds(part[digest])
        for judges in (found[name] for name in names if name in found):
            judges.n_by_digest = max(judges.n_by_digest - 1, 0)
            judges.note(how)
