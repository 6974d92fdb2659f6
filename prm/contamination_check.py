"""Keep the problems that PRMs and raters are evaluated on out of training, and audit training sets for them.

These are the problems of held-out sets, of gold, of canaries and of benchmark lists. Writes nothing.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np
from django.db.models import Q, QuerySet

from formats.near_duplicates import digest_normalized
from jobs import paging
from jobs.runner import JobProgress
from labeling import benchmarks
from labeling.models import Gold, Problem, Project, Trace
from labeling.models.gold import GoldUse
from prm.evaluation.contamination import ContaminationKind, JudgedProblems, TrainingProblems
from prm.labeled_traces import TraceLabels
from prm.models import PRM

BENCHMARK = "benchmark"
_CHUNK = 500  # problems between two heartbeats


def exclude_judging_problems(project: Project, labels: TraceLabels) -> TraceLabels:
    """Drop held-out problems, and problems similar to held-out, gold or canary problems."""
    outside, judging = labels.keep(~labels.is_reserve), JudgedProblems()
    for text in _load_judging_texts(project):
        judging.add(digest_normalized(text), text)
    leaking = {
        stored
        for stored, text in _load_problems(outside.traces).items()
        if (digest := digest_normalized(text)) in judging.digests or judging.holds(text, digest)
    }
    traces = (Trace.objects.filter(pk__in=part) for part in paging.split(outside.traces))
    excluded = [
        pk for part in traces for pk in part.filter(problem__normal_digest__in=leaking).values_list("pk", flat=True)
    ]
    return outside.keep(~np.isin(outside.traces, excluded))


def _load_judging_texts(project: Project) -> set[str]:
    held_out = Problem.objects.filter(project=project, is_reserve=True).values_list("text", flat=True)
    gold = Gold.objects.filter(Q(trace__project=project) | Q(use=GoldUse.CANARY))
    return {*held_out, *gold.values_list("trace__problem__text", flat=True)}


def _load_problems(traces: Sequence[int]) -> dict[str, str]:
    """Return the text of each distinct problem of these traces by its normal digest."""
    problems: dict[str, str] = {}
    for part in paging.split(traces):
        problems.update(Problem.objects.filter(traces__in=part).distinct().values_list("normal_digest", "text"))
    return problems


# --- audit ----------------------------------------------------------------------------------------------------------


@dataclass
class JudgingProblems:
    """Evaluated problems of one kind, and how many of them the training set contains.

    `name` is the name of a benchmark list. `n_by_digest` counts problems whose text is unknown, so that only equality
    can be checked.
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


def audit_training_set(prm: PRM, heartbeat: JobProgress) -> Generator[JobProgress, None, dict[str, Any]]:
    """Compare a PRM's training set with all evaluated problems.

    Yields the heartbeat now and then, because hundreds of thousands of problems take minutes. Returns the result as it
    is stored.
    """
    if prm.trained is None:
        return {"is_stated": False, "n_problems": None, "judges": []}
    texts = _load_problems(prm.trained_ids()).values()
    yield heartbeat
    training, judges = TrainingProblems(texts), []
    for kind, problems in _query_judging_problems(prm.project).items():
        judges.append((yield from _compare_problems(kind, problems, training, heartbeat)))
    judges += yield from _compare_benchmark_lists(training, heartbeat)
    return {"is_stated": True, "n_problems": len(texts), "judges": [asdict(each) for each in judges]}


def _query_judging_problems(project: Project) -> dict[str, QuerySet[Problem]]:
    """Return the problems by kind: first the kinds on which this project's figures depend, then those of other
    projects."""
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
    kind: str, problems: QuerySet[Problem], training: TrainingProblems, heartbeat: JobProgress
) -> Generator[JobProgress, None, JudgingProblems]:
    judges = JudgingProblems(kind)
    for chunk in _iterate_distinct(problems):
        for text in chunk.values():
            judges.count(training.holds(text))
        judges.n += len(chunk)
        yield heartbeat
    return judges


def _compare_benchmark_lists(
    training: TrainingProblems, heartbeat: JobProgress
) -> Generator[JobProgress, None, list[JudgingProblems]]:
    """Compare every benchmark list, sorted by name. A list ships digests; texts come from any project that has them."""
    lists = {
        name: JudgingProblems(BENCHMARK, name, n, n) for name, n in sorted(benchmarks.count_listed_problems().items())
    }
    for chunk in _iterate_distinct(benchmarks.query_listed_problems()):
        _count_listed(chunk, lists, training)
        yield heartbeat
    return list(lists.values())


def _iterate_distinct(problems: QuerySet[Problem]) -> Iterator[dict[str, str]]:
    """Yield texts by digest in chunks, each digest once; the same problem may be in several projects."""
    seen: set[str] = set()
    rows = paging.iterate_by_key(problems, "normal_digest", "text", size=_CHUNK)
    while page := list(islice(rows, _CHUNK)):
        chunk = {digest: text for _, digest, text in page if digest not in seen}
        seen |= chunk.keys()
        yield chunk


def _count_listed(chunk: dict[str, str], lists: dict[str, JudgingProblems], training: TrainingProblems) -> None:
    for digest, names in benchmarks.find_lists(chunk).items():
        match = training.holds(chunk[digest])
        for judges in (lists[name] for name in names if name in lists):
            judges.n_by_digest = max(judges.n_by_digest - 1, 0)
            judges.count(match)
