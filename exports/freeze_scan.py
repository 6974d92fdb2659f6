"""Finds out, before a manifest is frozen, what no condition of a database can say: which problems share long runs of
words with one that judges, which traces say the same, where problems sit in a split. Reads only."""

import hashlib
from collections.abc import Generator, Iterator
from itertools import islice
from typing import NamedTuple

from django.db.models import Q, QuerySet

from exports import splits
from exports.models import SnapshotPurpose, SplitAssignment
from exports.orders import SnapshotOrder
from exports.shards import BuildPlan
from jobs import paging
from labeling import benchmarks
from labeling.datasets.selection import Exclusions
from labeling.models import BenchmarkProblem, Gold, Option, Problem, Project, Trace
from labeling.models.gold import GoldUse
from prm.evaluation import contamination

_CHUNK = 1000
_TRACES_AT_ONCE = 100  # with the texts of their steps


class FreezeScan(NamedTuple):
    excluded: Exclusions
    plan: BuildPlan


def scan_before_freeze(project: Project, purpose: str, order: SnapshotOrder) -> Generator[int, None, FreezeScan]:
    """Yields how many texts were read, as signs of life."""
    is_training = purpose == SnapshotPurpose.TRAINING
    overlapping: list[int] = []
    plan = BuildPlan()
    if is_training:
        overlapping = yield from _find_overlapping(project)
        plan.benchmarks = _count_listed(project)
    duplicates = (yield from _find_duplicates(project)) if order.without_duplicates else []
    excluded = Exclusions(overlapping, duplicates, taken_in=order.taken_in, is_training=is_training)
    if order.is_split:
        excluded.seated = SplitAssignment.objects.filter(project=project).values("digest")
        excluded.spans_splits = yield from _find_split_conflicts(project, order, plan)
    return FreezeScan(excluded, plan)


def _problem_texts(problems: QuerySet[Problem]) -> Iterator[tuple[int, str, str]]:
    return paging.iterate_by_key(problems, "normal_digest", "text", size=_CHUNK)


def _judging_problems() -> QuerySet[Problem]:
    """Problems of every project that are set aside for evaluation, are those of canaries, or came in as a benchmark."""
    listed = BenchmarkProblem.objects.values("normal_digest")
    canaries = Gold.objects.filter(use=GoldUse.CANARY).values("trace__problem")
    return Problem.objects.filter(Q(is_reserve=True) | Q(pk__in=canaries) | Q(normal_digest__in=listed))


def _find_overlapping(project: Project) -> Generator[int, None, list[int]]:
    judges = contamination.JudgedProblems()
    for n, (_, digest, text) in enumerate(_problem_texts(_judging_problems())):
        judges.add(digest, text)
        if n % _CHUNK == 0:
            yield n
    found: list[int] = []
    for n, (pk, digest, text) in enumerate(_problem_texts(Problem.objects.filter(project=project))):
        if judges.holds(text, digest):
            found.append(pk)
        if n % _CHUNK == 0:
            yield n
    return found


def _count_listed(project: Project) -> dict[str, int]:
    """How many problems of this project stand on each list."""
    counts: dict[str, int] = {}
    digests = Problem.objects.filter(project=project).order_by("normal_digest").values_list("normal_digest", flat=True)
    part: set[str] = set()
    for digest in digests.distinct().iterator(chunk_size=_CHUNK):
        part.add(digest)
        if len(part) == _CHUNK:
            _count_lists(part, counts)
            part = set()
    _count_lists(part, counts)
    return counts


def _count_lists(digests: set[str], counts: dict[str, int]) -> None:
    for names in benchmarks.find_lists(digests).values():
        for name in names:
            counts[name] = counts.get(name, 0) + 1


def _find_duplicates(project: Project) -> Generator[int, None, list[int]]:
    """Traces whose problem and steps an older one has too: what differs is the answer's spelling, a score, a cut."""
    seen: set[bytes] = set()
    found: list[int] = []
    digest, trace_now = hashlib.blake2b(digest_size=16), -1
    for n, (trace, problem, text) in enumerate(_first_options(project)):
        if trace != trace_now:
            _note_duplicate(digest.digest(), trace_now, seen, found)
            digest, trace_now = hashlib.blake2b(problem.encode(), digest_size=16), trace
        digest.update(b"\0" + text.encode())
        if n % (10 * _CHUNK) == 0:
            yield n
    _note_duplicate(digest.digest(), trace_now, seen, found)
    return found


def _first_options(project: Project) -> Iterator[tuple[int, str, str]]:
    """Trace, its problem, and the text of each step's first option."""
    fields = ("step__trace_id", "step__trace__problem__normal_digest", "text")
    options = Option.objects.filter(position=0).order_by("step__trace", "step__position").values_list(*fields)
    traces = paging.iterate_by_key(Trace.objects.filter(project=project), size=_CHUNK)
    while page := [pk for (pk,) in islice(traces, _TRACES_AT_ONCE)]:
        yield from list(options.filter(step__trace__in=page))


def _note_duplicate(digest: bytes, trace: int, seen: set[bytes], found: list[int]) -> None:
    if trace < 0:
        return
    if digest in seen:
        found.append(trace)
    seen.add(digest)


def _find_split_conflicts(project: Project, order: SnapshotOrder, plan: BuildPlan) -> Generator[int, None, list[str]]:
    """Which problems the shares of this order would part from what they are like; into the plan goes where those are
    that sit with others."""
    spans_splits: list[str] = []
    seats = SplitAssignment.objects.filter(project=project)
    for n, (_, digest, normal, low, high) in enumerate(
        paging.iterate_by_key(seats, "digest", "normal_digest", "low", "high")
    ):
        if splits.SplitInterval(low, high).side(validation=order.validation, test=order.test) is None:
            spans_splits.append(digest)
        elif low != splits.split_position(normal):
            plan.places[normal] = low
        if n % _CHUNK == 0:
            yield n
    return spans_splits
