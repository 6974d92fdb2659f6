"""Keep the problems that PRMs and raters are evaluated on out of training, and audit training sets for them.

These are the problems of held-out sets, of gold, of canaries and of benchmark lists. Writes nothing.
"""

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

BENCHMARK = "benchmark"
_TRACES_PER_QUERY = 2000
_CHUNK = 500  # problems between two progress reports


def exclude_judging_problems(project: Project, labels: TraceLabels) -> TraceLabels:
    """Drop held-out problems, and problems similar to held-out, gold or canary problems."""
    outside = labels.keep(~labels.is_reserve)
    problems = _load_problems(outside.traces)
    leaking = contamination.find_leaking_problems(
        training=[text for _, text in problems], judged=_load_judging_texts(project)
    )
    if not leaking:
        return outside
    excluded = {problems[n][0] for n in leaking}
    digests: dict[int, str] = {}
    for start in range(0, len(outside.traces), _TRACES_PER_QUERY):
        rows = Trace.objects.filter(pk__in=outside.traces[start : start + _TRACES_PER_QUERY])
        digests.update(rows.values_list("pk", "problem__normal_digest"))
    return outside.keep(np.array([digests[trace] not in excluded for trace in outside.traces], dtype=np.bool_))


def _load_judging_texts(project: Project) -> list[str]:
    held_out = Problem.objects.filter(project=project, is_reserve=True).values_list("text", flat=True)
    gold = Gold.objects.filter(Q(trace__project=project) | Q(use=GoldUse.CANARY))
    return sorted({*held_out, *gold.values_list("trace__problem__text", flat=True)})


def _load_problems(traces: Sequence[int]) -> list[tuple[str, str]]:
    """Return the normal digest and the text of each distinct problem of these traces."""
    problems: dict[str, str] = {}
    for start in range(0, len(traces), _TRACES_PER_QUERY):
        rows = Problem.objects.filter(traces__in=traces[start : start + _TRACES_PER_QUERY]).distinct()
        problems.update(rows.values_list("normal_digest", "text"))
    return list(problems.items())


# --- audit ----------------------------------------------------------------------------------------------------------


@dataclass
class JudgingProblems:
    """Evaluated problems of one kind, and how many of them the training set contains.

    `name` is that of a benchmark list. `n_by_digest` counts problems whose text is unknown, so that only equality can
    be checked.
    """

    kind: str
    name: str = ""
    n: int = 0
    n_by_digest: int = 0
    n_equal: int = 0
    n_overlapping: int = 0

    def count(self, match: ContaminationKind | None) -> None:
        self.n_equal += match is ContaminationKind.EQUAL
        self.n_overlapping += match is ContaminationKind.OVERLAPPING


def audit_training_set(prm: PRM) -> Generator[int, None, dict[str, Any]]:
    """Compare a PRM's training set with all evaluated problems.

    Yields the number of compared problems now and then, and returns the result as it is stored.
    """
    if prm.trained is None:
        return {"is_stated": False, "n_problems": None, "judges": []}
    texts = [text for _, text in _load_problems(score_encoding.decode_ids(bytes(prm.trained)))]
    yield 0
    training, judges = TrainingProblems(texts), []
    for kind, problems in _query_judging_problems(prm.project).items():
        judges.append((yield from _compare_problems(kind, problems, training)))
    judges += yield from _compare_benchmark_lists(training)
    return {"is_stated": True, "n_problems": len(texts), "judges": [asdict(each) for each in judges]}


def _query_judging_problems(project: Project) -> dict[str, QuerySet[Problem]]:
    """Return the problems by kind: first those of this project's figures, then those of other projects."""
    held_out, gold = Problem.objects.filter(is_reserve=True), Gold.objects.exclude(use=GoldUse.CANARY)
    canaries = Gold.objects.filter(use=GoldUse.CANARY)
    return {
        "reserve": held_out.filter(project=project),
        "gold": _problems_of_gold(gold.filter(trace__project=project)),
        "canary": _problems_of_gold(canaries),
        "other_reserve": held_out.exclude(project=project),
        "other_gold": _problems_of_gold(gold.exclude(trace__project=project)),
    }


def _problems_of_gold(gold: QuerySet[Gold]) -> QuerySet[Problem]:
    return Problem.objects.filter(pk__in=gold.values("trace__problem"))


def _compare_problems(
    kind: str, problems: QuerySet[Problem], training: TrainingProblems
) -> Generator[int, None, JudgingProblems]:
    """Compare the distinct problems of one kind; the same problem may be in several projects."""
    judges, digests = JudgingProblems(kind), set[str]()
    for _, digest, text in paging.iterate_by_key(problems, "normal_digest", "text", size=_CHUNK):
        if digest not in digests:
            digests.add(digest)
            judges.count(training.holds(text))
            if len(digests) % _CHUNK == 0:
                yield len(digests)
    judges.n = len(digests)
    return judges


def _compare_benchmark_lists(training: TrainingProblems) -> Generator[int, None, list[JudgingProblems]]:
    """Compare every benchmark list, sorted by name. A list ships digests; texts come from any project that has them."""
    lists = {
        name: JudgingProblems(BENCHMARK, name, n, n) for name, n in sorted(benchmarks.count_listed_problems().items())
    }
    digests: set[str] = set()
    chunk: dict[str, str] = {}
    problems = benchmarks.query_listed_problems()
    for _, digest, text in paging.iterate_by_key(problems, "normal_digest", "text", size=_CHUNK):
        if digest not in digests:
            digests.add(digest)
            chunk[digest] = text
        if len(chunk) == _CHUNK:
            _count_listed(chunk, lists, training)
            yield len(digests)
            chunk = {}
    _count_listed(chunk, lists, training)
    return list(lists.values())


def _count_listed(chunk: dict[str, str], lists: dict[str, JudgingProblems], training: TrainingProblems) -> None:
    for digest, names in benchmarks.find_lists(chunk).items():
        match = training.holds(chunk[digest])
        for judges in (lists[name] for name in names if name in lists):
            judges.n_by_digest = max(judges.n_by_digest - 1, 0)
            judges.count(match)
