"""Which problems judge PRMs and raters here, and what training must leave out so that they can. Reads alone."""

from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from django.db.models import Q, QuerySet

from jobs import paging
from labeling import benchmarks
from labeling.models import Gold, Problem, Project, Trace
from labeling.models.gold import GoldUse
from prm import score_encoding
from prm.evaluation import contamination
from prm.evaluation.contamination import ContaminationKind, TrainingProblems
from prm.models import PRM
from prm.trace_labels import TraceLabels

_TRACES_PER_QUERY = 2000


def judging_texts(project: Project) -> list[str]:
    """The texts of the problems that PRMs (reserve, any project's canaries) and raters (gold) are judged on."""
    reserve = Problem.objects.filter(project=project, is_reserve=True).values_list("text", flat=True)
    gold = Gold.objects.filter(Q(trace__project=project) | Q(use=GoldUse.CANARY))
    return sorted({*reserve, *gold.values_list("trace__problem__text", flat=True)})


def load_problems_of_traces(traces: Sequence[int]) -> list[tuple[str, str]]:
    """Normal digest and text of the problems of these traces, each once."""
    found: dict[str, str] = {}
    for start in range(0, len(traces), _TRACES_PER_QUERY):
        rows = Problem.objects.filter(traces__in=traces[start : start + _TRACES_PER_QUERY]).distinct()
        found.update(rows.values_list("normal_digest", "text"))
    return list(found.items())


def exclude_judging_problems(project: Project, labels: TraceLabels) -> TraceLabels:
    """Neither the reserve, nor a problem that is like one of it, of gold or of a canary."""
    outside = labels.keep(~labels.is_reserve)
    learnt = load_problems_of_traces(outside.traces)
    giving_away = contamination.find_leaking_problems(
        training=[text for _, text in learnt], judged=judging_texts(project)
    )
    out = {learnt[n][0] for n in giving_away}
    if not out:
        return outside
    digests: dict[int, str] = {}
    for start in range(0, len(outside.traces), _TRACES_PER_QUERY):
        rows = Trace.objects.filter(pk__in=outside.traces[start : start + _TRACES_PER_QUERY])
        digests.update(rows.values_list("pk", "problem__normal_digest"))
    return outside.keep(np.array([digests[trace] not in out for trace in outside.traces], dtype=np.bool_))


# Has a PRM been trained on problems that judge: those of reserves, of gold, of canaries, of the lists of benchmarks?


_CHUNK = 500
BENCHMARK = "benchmark"


@dataclass
class JudgingProblems:
    """Problems of one kind that judge, and how many of them the training set holds."""

    kind: str
    name: str = ""  # of a list
    n: int = 0
    n_by_digest: int = 0  # whose texts nobody here has
    n_equal: int = 0
    n_overlapping: int = 0

    def note(self, how: ContaminationKind | None) -> None:
        self.n_equal += how is ContaminationKind.EQUAL
        self.n_overlapping += how is ContaminationKind.OVERLAPPING


def audit_training_set(prm: PRM) -> Generator[int, None, dict[str, Any]]:
    """What an audit keeps. Yields how many problems were looked at, as signs of life."""
    if prm.trained is None:
        return {"is_stated": False, "n_problems": None, "judges": []}
    texts = [text for _, text in load_problems_of_traces(score_encoding.decode_ids(bytes(prm.trained)))]
    yield 0
    learnt, found = TrainingProblems(texts), []
    for kind, problems in _judging_problems(prm.project).items():
        judges = JudgingProblems(kind)
        yield from _compare_problems(problems, judges, learnt)
        found.append(judges)
    found += yield from _compare_benchmark_lists(learnt)
    return {"is_stated": True, "n_problems": len(texts), "judges": [asdict(each) for each in found]}


def _judging_problems(project: Project) -> dict[str, QuerySet[Problem]]:
    """Reserve, gold and canaries: those that figures here rest on, then those of other projects."""
    reserve, gold = Problem.objects.filter(is_reserve=True), Gold.objects.exclude(use=GoldUse.CANARY)
    canaries = Gold.objects.filter(use=GoldUse.CANARY)
    return {
        "reserve": reserve.filter(project=project),
        "gold": _problems_of_gold(gold.filter(trace__project=project)),
        "canary": _problems_of_gold(canaries),
        "other_reserve": reserve.exclude(project=project),
        "other_gold": _problems_of_gold(gold.exclude(trace__project=project)),
    }


def _problems_of_gold(gold: QuerySet[Gold]) -> QuerySet[Problem]:
    return Problem.objects.filter(pk__in=gold.values("trace__problem"))


def _compare_problems(
    problems: QuerySet[Problem], judges: JudgingProblems, learnt: TrainingProblems
) -> Generator[int, None, None]:
    """One problem may be in several projects: it counts once."""
    seen: set[str] = set()
    for _, digest, text in paging.iterate_by_key(problems, "normal_digest", "text", size=_CHUNK):
        if digest not in seen:
            seen.add(digest)
            judges.note(learnt.holds(text))
            if len(seen) % _CHUNK == 0:
                yield len(seen)
    judges.n = len(seen)


def _compare_benchmark_lists(learnt: TrainingProblems) -> Generator[int, None, list[JudgingProblems]]:
    """One entry a list, in the order of names."""
    found = {
        name: JudgingProblems(BENCHMARK, name, n, n) for name, n in sorted(benchmarks.count_listed_problems().items())
    }
    seen: set[str] = set()
    part: dict[str, str] = {}
    for _, digest, text in paging.iterate_by_key(
        benchmarks.query_listed_problems(), "normal_digest", "text", size=_CHUNK
    ):
        if digest not in seen:
            seen.add(digest)
            part[digest] = text
        if len(part) == _CHUNK:
            _note_listed(part, found, learnt)
            yield len(seen)
            part = {}
    _note_listed(part, found, learnt)
    return list(found.values())


def _note_listed(part: dict[str, str], found: dict[str, JudgingProblems], learnt: TrainingProblems) -> None:
    for digest, names in benchmarks.find_lists(part).items():
        how = learnt.holds(part[digest])
        for judges in (found[name] for name in names if name in found):
            judges.n_by_digest = max(judges.n_by_digest - 1, 0)
            judges.note(how)
