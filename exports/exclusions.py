"""Rules for the rows that a snapshot leaves out. All of them are in this module. Reads only.

A training snapshot leaves out everything that evaluates a model or a rater: held-out problems, screening, gold,
training and canary traces, and problems that are on a benchmark's list or resemble an evaluation problem. A lead can
override these rules by name. Any snapshot can leave out duplicates, and a snapshot with splits leaves out problems that
belong to no single split. The first rule that applies to a row is its reason, counted in `Manifest.left_out`.
"""

import hashlib
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from itertools import islice

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Substr
from msgspec import Struct

from exports.models import SplitAssignment
from exports.splits import SplitScan
from formats.normalization import LISTED_DIGITS
from jobs import paging
from jobs.runner import JobProgress
from labeling import benchmarks
from labeling.datasets.selection import ExclusionRule, ManifestFilters, trace_prefix
from labeling.models import BenchmarkProblem, Gold, Option, Problem, Project, Trace
from labeling.models.assignment import AssignmentPurpose
from labeling.models.gold import GoldUse
from labeling.models.queue import SamplingSource
from prm.evaluation import contamination
from rawsql import values_subquery

EXCLUSION_LABELS = {
    "reserve": "held-out problem, of this project or another",
    "screening": "trace used for screening annotators",
    "gold": "gold trace",
    "training": "trace used for training annotators",
    "canary": "same problem as a canary trace",
    "benchmark": "problem on a benchmark's list",
    "overlap": "problem that shares half of its 13-word sequences with an evaluation problem",
    "duplicate": "duplicate of another trace",
    "astride": "problem similar to problems in different splits",
    "late": "problem imported while the snapshot was being made",
}
OVERRIDABLE_EXCLUSIONS = ("reserve", "screening", "gold", "training", "canary", "benchmark", "overlap")
ARCHIVE_EXCLUSIONS = ("duplicate", "astride", "late")  # they apply to archives too
BENCHMARK_PREFIX = "benchmark:"  # an override of one list only: "benchmark:GSM8K test"

_CHUNK_SIZE = 1000
_TRACES_PER_QUERY = 100  # each with the texts of its steps
_HEARTBEAT = JobProgress(0)


class TextScan(Struct):
    """What can only be found by reading the texts."""

    overlapping: Sequence[int] = ()  # problems that share long runs of words with an evaluation problem
    duplicates: Sequence[int] = ()  # traces with the same problem and steps as an earlier trace


def build_rules(
    project: Project,
    filters: ManifestFilters,
    *,
    is_training: bool,
    overrides: Sequence[str] = (),
    texts: TextScan | None = None,
    split: SplitScan | None = None,
) -> list[ExclusionRule]:
    """Return the rules in the order in which they apply. `overrides` are reasons that do not count."""
    prefix, texts = trace_prefix(filters), texts or TextScan()
    rules: list[ExclusionRule] = []
    if is_training:
        if filters.unit == "submissions":
            rules += _assignment_rules()
        rules += _gold_rules(prefix)
        rules += _problem_rules(prefix, overrides)
        if texts.overlapping:
            rules.append(("overlap", Q(**{f"{prefix}problem__in": values_subquery(texts.overlapping)})))
    if split is not None:
        rules += _split_rules(prefix, project, split)
    if texts.duplicates:
        rules.append(("duplicate", Q(**{f"{prefix}pk__in": values_subquery(texts.duplicates)})))
    return [(reason, condition) for reason, condition in rules if reason not in overrides]


def _assignment_rules() -> list[ExclusionRule]:
    purposes = (AssignmentPurpose.SCREENING, AssignmentPurpose.GOLD, AssignmentPurpose.TRAINING)
    reserve = Q(assignment__lane__arm=SamplingSource.RESERVE) | Q(assignment__draw__arm=SamplingSource.RESERVE)
    return [*((str(each.value), Q(assignment__purpose=each)) for each in purposes), ("reserve", reserve)]


def _gold_rules(prefix: str) -> list[ExclusionRule]:
    gold = Gold.objects.filter(trace=OuterRef(f"{prefix}pk"))
    return [
        ("screening", Exists(gold.filter(use=GoldUse.SCREENING))),
        ("training", Exists(gold.filter(use=GoldUse.TRAINING))),
        ("gold", Exists(gold.exclude(use=GoldUse.CANARY))),
    ]


def _problem_rules(prefix: str, overrides: Sequence[str]) -> list[ExclusionRule]:
    """Problems are compared across projects, by their normalized text."""
    digest = OuterRef(f"{prefix}problem__normal_digest")
    canaries = Gold.objects.filter(trace__problem__normal_digest=digest, use=GoldUse.CANARY)
    held_out = Problem.objects.filter(normal_digest=digest, is_reserve=True)
    return [
        ("canary", Exists(canaries)),
        ("benchmark", _is_on_benchmark_list(prefix, overrides)),
        ("reserve", Exists(held_out)),
    ]


def _is_on_benchmark_list(prefix: str, overrides: Sequence[str]) -> Q:
    """Match the lists that ship with the code and the imported ones, except those overridden by name."""
    ignored = {each.removeprefix(BENCHMARK_PREFIX) for each in overrides if each.startswith(BENCHMARK_PREFIX)}
    imported = BenchmarkProblem.objects.filter(normal_digest=OuterRef(f"{prefix}problem__normal_digest"))
    shipped = sorted(
        set().union(*(digests for name, digests in benchmarks.load_shipped_lists().items() if name not in ignored))
    )
    listed = Problem.objects.annotate(listed=Substr("normal_digest", 1, LISTED_DIGITS)).filter(
        pk=OuterRef(f"{prefix}problem_id"), listed__in=values_subquery(shipped)
    )
    return Q(Exists(imported.exclude(source__name__in=ignored))) | Q(Exists(listed))


def _split_rules(prefix: str, project: Project, split: SplitScan) -> list[ExclusionRule]:
    """`late` problems were imported after the splits were assigned."""
    digest = f"{prefix}problem__digest__in"
    assigned = SplitAssignment.objects.filter(project=project).values("digest")
    rules: list[ExclusionRule] = [("late", ~Q(**{digest: assigned}))]
    if split.conflicting:
        rules.insert(0, ("astride", Q(**{digest: values_subquery(split.conflicting)})))
    return rules


# --- reading texts ---------------------------------------------------------------------------------------------------


def scan_texts(
    project: Project, *, is_training: bool, without_duplicates: bool
) -> Generator[JobProgress, None, TextScan]:
    return TextScan(
        overlapping=(yield from _find_overlapping(project)) if is_training else (),
        duplicates=(yield from _find_duplicates(project)) if without_duplicates else (),
    )


def _find_overlapping(project: Project) -> Generator[JobProgress, None, list[int]]:
    """Find problems that share long runs of words with an evaluation problem of any project."""
    canaries = Gold.objects.filter(use=GoldUse.CANARY).values("trace__problem")
    listed = BenchmarkProblem.objects.values("normal_digest")
    evaluating = Problem.objects.filter(Q(is_reserve=True) | Q(pk__in=canaries) | Q(normal_digest__in=listed))
    judged = contamination.JudgedProblems()
    for n, (_, digest, text) in enumerate(_problem_texts(evaluating)):
        judged.add(digest, text)
        if n % _CHUNK_SIZE == 0:
            yield _HEARTBEAT
    overlapping: list[int] = []
    for n, (pk, digest, text) in enumerate(_problem_texts(Problem.objects.filter(project=project))):
        if judged.holds(text, digest):
            overlapping.append(pk)
        if n % _CHUNK_SIZE == 0:
            yield _HEARTBEAT
    return overlapping


def _problem_texts(problems: QuerySet[Problem]) -> Iterator[tuple[int, str, str]]:
    return paging.iterate_by_key(problems, "normal_digest", "text", size=_CHUNK_SIZE)


def _find_duplicates(project: Project) -> Generator[JobProgress, None, list[int]]:
    """Find traces whose problem and steps equal those of an earlier trace. Answers, scores, and cuts may differ."""
    seen: set[bytes] = set()
    duplicates: list[int] = []
    traces = paging.iterate_by_key(Trace.objects.filter(project=project), "problem__normal_digest", size=_CHUNK_SIZE)
    while page := list(islice(traces, _TRACES_PER_QUERY)):
        hashes = {pk: hashlib.blake2b(problem.encode(), digest_size=16) for pk, problem in page}
        options = Option.objects.filter(position=0, step__trace__in=hashes)
        for trace, text in options.order_by("step__trace", "step__position").values_list("step__trace_id", "text"):
            hashes[trace].update(b"\0" + text.encode())
        for trace, trace_hash in hashes.items():
            if trace_hash.digest() in seen:
                duplicates.append(trace)
            seen.add(trace_hash.digest())
        yield _HEARTBEAT
    return duplicates


def count_benchmark_problems(project: Project) -> dict[str, int]:
    """Return how many problems of the project are on each benchmark's list."""
    counts: Counter[str] = Counter()
    digests = Problem.objects.filter(project=project).order_by("normal_digest").values_list("normal_digest", flat=True)
    remaining = digests.distinct().iterator(chunk_size=_CHUNK_SIZE)
    while chunk := set(islice(remaining, _CHUNK_SIZE)):
        for names in benchmarks.find_lists(chunk).values():
            counts.update(names)
    return dict(counts)
