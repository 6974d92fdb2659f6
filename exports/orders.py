"""The order for a snapshot, which is stored with it, and the rules for the rows that the snapshot leaves out."""

import hashlib
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Sequence
from itertools import islice
from typing import Literal

from django.conf import settings
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Substr
from msgspec import Struct, convert, field

from exports.models import Snapshot, SplitAssignment
from exports.splits import SplitScan
from formats.catalog import OUTPUT_FORMATS
from formats.examples import LabelRule
from formats.near_duplicates import LISTED_DIGITS
from jobs import paging
from jobs.runner import JobProgress
from labeling import benchmarks
from labeling.datasets.selection import ExclusionRule, ManifestFilters, trace_prefix
from labeling.models import BenchmarkProblem, Gold, Option, OptionPart, Problem, Project, Rater, Trace
from labeling.models.assignment import AssignmentPurpose
from labeling.models.gold import GoldUse
from labeling.models.queue import SamplingSource
from labeling.models.rater import RaterKind
from labeling.traces import stored_images
from prm.evaluation import contamination
from rawsql import values_subquery

EXCLUSION_LABELS = {
    "set_aside": "label that a lead set aside",
    "rater": "annotator left out on request, or a consensus that the other labels do not determine",
    "machines": "trace for which the chosen machines do not name the same first error",
    "reserve": "held-out problem, of this project or another",
    "screening": "trace used for screening annotators",
    "gold": "gold trace",
    "training": "trace used for training annotators",
    "canary": "same problem as a canary trace",
    "benchmark": "problem on a benchmark's list",
    "overlap": "problem that shares half of its 13-word sequences with an evaluation problem",
    "duplicate": "duplicate of another trace",
    "astride": "problem similar to problems in different splits",
    "late": "problem imported while the snapshot was being built",
}
OVERRIDABLE_EXCLUSIONS = ("reserve", "screening", "gold", "training", "canary", "benchmark", "overlap")
ARCHIVE_EXCLUSIONS = ("set_aside", "rater", "machines", "duplicate", "astride", "late")  # they apply to archives too
BENCHMARK_PREFIX = "benchmark:"  # an override of one list only: "benchmark:GSM8K test"

_CHUNK_SIZE = 1000
_TRACES_PER_QUERY = 100  # each with the texts of its steps
_HEARTBEAT = JobProgress(0)
Ending = Literal["jsonl", "jsonl.gz", "jsonl.zst", "csv", "parquet"]
ENDINGS: tuple[Ending, ...] = ("jsonl", "jsonl.gz", "jsonl.zst", "csv", "parquet")
TABLE_ENDINGS: tuple[Ending, ...] = ("csv", "parquet")
YEARS = (1970, 9000)  # converting a time near the ends of the calendar to another zone overflows


class InvalidOrder(Exception):
    """The snapshot cannot be built with these options. `code` names the problem; the message explains it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class SnapshotOrder(Struct, forbid_unknown_fields=True):
    formats: list[str]
    filters: ManifestFilters = field(default_factory=ManifestFilters)
    rule: LabelRule = field(default_factory=LabelRule)
    ending: Ending = "jsonl"
    # Shares of problems for validation and test; the rest is for training.
    validation: float = 0.0
    test: float = 0.0
    without_duplicates: bool = False
    has_labeler_names: bool = False  # imported labelers keep the names of their files; otherwise they have pseudonyms
    # Exclusion reasons to override in a training snapshot (`exports.orders`). They need a `reason`.
    taken_in: list[str] = field(default_factory=list)
    reason: str = ""
    deliver_to: list[str] = field(default_factory=list)  # names of destinations

    @property
    def by_trace(self) -> bool:
        """Whether the rows of a trace must be next to each other."""
        return self.filters.is_consensus or any(OUTPUT_FORMATS[name].is_table for name in self.formats)

    @property
    def is_split(self) -> bool:
        return self.validation + self.test > 0


def load_order(snapshot: Snapshot) -> SnapshotOrder:
    return convert(snapshot.order, SnapshotOrder)


def validate_order(order: SnapshotOrder) -> None:
    """Raise InvalidOrder if the parts of an order do not fit together."""
    for is_invalid, code, message in _check_order(order):
        if is_invalid:
            raise InvalidOrder(code, message)
    validate_destinations(order.deliver_to)


def validate_machines(project: Project, names: Sequence[str]) -> None:
    """Raise InvalidOrder if these are not at least two machines that label in the project."""
    machines = Rater.objects.filter(project=project, kind=RaterKind.MACHINE).values_list("machine", "labeler")
    known = {name: machine for machine, labeler in machines for name in (machine, labeler)}
    if unknown := sorted(set(names) - known.keys()):
        message = f"Unknown machine {', '.join(unknown)}. Known machines: {'; '.join(sorted(set(known.values())))}."
        raise InvalidOrder("machines", message)
    if names and len({known[name] for name in names}) < 2:
        raise InvalidOrder("machines", "Name at least two machines that must agree.")


def validate_destinations(names: Sequence[str]) -> None:
    """Raise InvalidOrder if a destination is not configured."""
    known = settings.DESTINATIONS
    if unknown := sorted(set(names) - known.keys()):
        message = f"Unknown destination {', '.join(unknown)}. Configured destinations: {', '.join(known) or 'none'}."
        raise InvalidOrder("destination", message)


def _check_order(order: SnapshotOrder) -> Iterator[tuple[bool, str, str]]:
    formats, reasons = ", ".join(OUTPUT_FORMATS), ", ".join(OVERRIDABLE_EXCLUSIONS)
    unknown = ", ".join(name for name in order.formats if name not in OUTPUT_FORMATS)
    yield not order.formats, "format", f"No format is selected. Use one or more of: {formats}."
    yield bool(unknown), "format", f"Unknown format {unknown}. Use one of: {formats}."
    yield (
        bool(order.taken_in) and not order.reason.strip(),
        "reason",
        "Overriding an exclusion requires a reason, which is printed on the dataset card.",
    )
    for name in order.taken_in:
        is_known = name in OVERRIDABLE_EXCLUSIONS or name.startswith(BENCHMARK_PREFIX)
        yield not is_known, "exclusion", f"Unknown exclusion reason {name}. Use one of: {reasons}, benchmark:NAME."
    yield (
        not 0 <= order.validation + order.test < 1 or min(order.validation, order.test) < 0,
        "shares",
        "The shares for validation and test must not be negative, and must add up to less than 1.",
    )
    times = [time for time in (order.filters.submitted_from, order.filters.submitted_until) if time]
    yield (
        any(not YEARS[0] <= time.year <= YEARS[1] for time in times),
        "dates",
        f"Submission dates must be between the years {YEARS[0]} and {YEARS[1]}.",
    )
    yield (
        order.filters.is_consensus and "prm800k" in order.formats,
        "consensus",
        "PRM800K contains the ratings of individual raters. Choose another format for the consensus.",
    )
    yield (
        order.filters.is_consensus and order.rule.label_set not in ("as_rated", "stop"),
        "label_set",
        "This label set is derived from the ratings of individual raters. Choose those instead of the consensus.",
    )
    yield (
        order.rule.label_set != "as_rated" and "prm800k" in order.formats,
        "label_set",
        "PRM800K contains the ratings as they were given. Choose another format for this label set.",
    )
    yield (
        order.ending in TABLE_ENDINGS and any(OUTPUT_FORMATS[name].only_json_lines for name in order.formats),
        "ending",
        "PRM800K and chats are exported only as JSON Lines. Build a separate snapshot for them.",
    )
    yield (
        len({OUTPUT_FORMATS[name].wants_raters for name in order.formats}) > 1,
        "unit",
        "Outcomes describe traces, not ratings. Build a separate snapshot for them.",
    )


# --- exclusions ------------------------------------------------------------------------------------------------------


class TextScan(Struct):
    """Rows to leave out that only reading the texts can find."""

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
    for n, (_, digest, text) in enumerate(paging.iterate_by_key(evaluating, "normal_digest", "text")):
        judged.add(digest, text)
        if n % _CHUNK_SIZE == 0:
            yield _HEARTBEAT
    overlapping: list[int] = []
    problems = Problem.objects.filter(project=project)
    for n, (pk, digest, text) in enumerate(paging.iterate_by_key(problems, "normal_digest", "text")):
        if judged.holds(text, digest):
            overlapping.append(pk)
        if n % _CHUNK_SIZE == 0:
            yield _HEARTBEAT
    return overlapping


def _find_duplicates(project: Project) -> Generator[JobProgress, None, list[int]]:
    """Find traces whose problem and steps equal those of an earlier trace. Answers, scores, and cuts may differ."""
    seen: set[bytes] = set()
    duplicates: list[int] = []
    has_images = stored_images.has_images(project.pk)
    traces = paging.iterate_by_key(Trace.objects.filter(project=project), "problem__normal_digest", size=_CHUNK_SIZE)
    while page := list(islice(traces, _TRACES_PER_QUERY)):
        hashes = {pk: hashlib.blake2b(problem.encode(), digest_size=16) for pk, problem in page}
        options = Option.objects.filter(position=0, step__trace__in=hashes)
        for trace, text in options.order_by("step__trace", "step__position").values_list("step__trace_id", "text"):
            hashes[trace].update(b"\0" + text.encode())
        for trace, digest in _list_step_images(hashes) if has_images else ():
            hashes[trace].update(b"\1" + digest.encode())
        for trace, trace_hash in hashes.items():
            if trace_hash.digest() in seen:
                duplicates.append(trace)
            seen.add(trace_hash.digest())
        yield _HEARTBEAT
    return duplicates


def _list_step_images(traces: Collection[int]) -> Iterator[tuple[int, str]]:
    """Yield the digests of the images in the steps of traces, in their order."""
    parts = OptionPart.objects.filter(option__position=0, option__step__trace__in=traces).exclude(image=None)
    ordered = parts.order_by("option__step__trace", "option__step__position", "position")
    yield from ordered.values_list("option__step__trace", "image__digest")


def count_benchmark_problems(project: Project) -> dict[str, int]:
    """Return how many problems of the project are on each benchmark's list."""
    counts: Counter[str] = Counter()
    digests = Problem.objects.filter(project=project).order_by("normal_digest").values_list("normal_digest", flat=True)
    remaining = digests.distinct().iterator(chunk_size=_CHUNK_SIZE)
    while chunk := set(islice(remaining, _CHUNK_SIZE)):
        for names in benchmarks.find_lists(chunk).values():
            counts.update(names)
    return dict(counts)
