"""Load records into the database: problems, traces, steps, options, and the submissions of the file.

Imported submissions are complete, marked `imported`, and never changed again. No other edit can conflict with them, so
they are inserted in bulk instead of through `labeling.assignments`.
"""

import datetime as dt
import gc
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec
from django.db import transaction

from accounts.models import User
from events import audit_log
from formats.near_duplicates import TextCollection
from formats.records import PREGENERATED, BadLine, SubmissionRecord, TraceRecord, TurnRecord
from jobs import paging
from jobs.runner import JobProgress
from labeling import benchmarks, queue
from labeling.models import Gold, Problem, Project, Source, Trace
from labeling.models.gold import GoldUse
from labeling.models.queue import SamplingSource
from labeling.models.trace import ImportedLabelKind, SourcePurpose
from labeling.quality.gold import enqueue_gold, make_gold
from labeling.quality.settlements import mark_due, mark_imported_due
from labeling.traces import steering_rules, trace_rows
from labeling.traces.scan import ImportReport, NearDuplicateSummary
from labeling.traces.trace_rows import ImportRows, NumberedRecord, StepRef, SubmissionRows, TraceRef, TraceRows

CHUNK_SIZE = 200


@dataclass(kw_only=True)
class LoadState:
    """The state of the import of one file between its chunks."""

    project: Project
    source: Source
    labels: str = ImportedLabelKind.JUDGMENTS
    enqueues: bool = True
    gold_use: GoldUse = GoldUse.HIDDEN
    by: User | None = None
    report: ImportReport = field(default_factory=ImportReport)  # with the counts of the scan, if there was one
    _occurrences: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.enqueues &= self.source.purpose != SourcePurpose.BENCHMARK

    def number(self, record: TraceRecord) -> NumberedRecord:
        """Add how often the record occurred before in the file, which is part of its identity.

        Records are compared by eight bytes of their digest: a collision happens in one of thirty million files with a
        million records.
        """
        if not record.digest:
            return NumberedRecord(record, 0)  # not from a file: the content alone identifies it
        key = int(record.digest[:16], 16)
        self._occurrences[key] += 1
        return NumberedRecord(record, self._occurrences[key] - 1)

    def skip(self, record: TraceRecord | BadLine) -> None:
        """Number a record that is already imported, when an import resumes."""
        if isinstance(record, TraceRecord):
            self.number(record)


def load_records(
    *,
    project: Project,
    source: Source,
    records: Iterable[TraceRecord],
    now: dt.datetime,
    enqueues: bool = True,
) -> None:
    """Load all records, one chunk per transaction. Loading them again adds nothing."""
    state = LoadState(project=project, source=source, enqueues=enqueues)
    for part in split_chunks(records, CHUNK_SIZE):
        load_chunk(state=state, records=part, now=now)


def load_chunk(*, state: LoadState, records: Iterable[TraceRecord | BadLine], now: dt.datetime) -> None:
    """Load one chunk in one transaction. New traces without ratings are added to the queue."""
    with garbage_collection_paused(), transaction.atomic():
        numbered = [state.number(record) for record in records if isinstance(record, TraceRecord)]
        trace_rows.lock_project_import(state.project.pk)
        rows = ImportRows()
        traces = TraceRows(state.project, state.source, now, rows)
        traces.find_or_add(numbered)
        submissions = SubmissionRows(state.project, state.source, now, rows)
        if state.labels not in (ImportedLabelKind.GOLD, ImportedLabelKind.NONE):
            submissions.add_new(numbered, traces)
        rows.insert()
        if any(record.pair for record, _ in numbered):
            queue.record_imported_readers(trace_ids=submissions.rated)
        mark_imported_due(trace_ids=submissions.with_enough_votes, now=now)
        mark_due(trace_ids=submissions.with_machine_ratings, now=now)
        if traces.undone:  # before gold is queued: withdrawn traces are not queued
            queue.reinstate_traces(trace_ids=traces.undone, now=now, reason="imported again", by=state.by)
        gold = _make_gold(state, numbered, traces, now) if state.labels == ImportedLabelKind.GOLD else []
        rated = submissions.rated.union(gold)
        if state.enqueues:
            unrated = [trace for trace in traces.added if trace.kind == PREGENERATED and trace.pk not in rated]
            state.report.queued += _enqueue_traces(state.project, unrated, now)
            ids = [trace.pk for trace in unrated]
            steering_rules.apply_rules(project_id=state.project.pk, trace_ids=ids, now=now)
        _register_benchmark_problems(state, numbered, now)
        _log_step_changes(state, numbered, traces, now)
    _count_added(state.report, rows, traces, numbered)


def _log_step_changes(
    state: LoadState, numbered: Sequence[NumberedRecord], traces: TraceRows, now: dt.datetime
) -> None:
    """Log how the steps of new traces were changed in the preview."""
    for (record, _), trace in zip(numbered, traces.by_record, strict=True):
        if record.step_changes and trace.is_new:
            audit_log.log_event(
                what="trace.changed_in_preview",
                by=state.by,
                now=now,
                project=state.project.pk,
                subject=f"trace:{trace.pk}",
                detail={"changes": msgspec.to_builtins(record.step_changes), "line": record.line},
            )


def _count_added(report: ImportReport, rows: ImportRows, traces: TraceRows, numbered: Sequence[NumberedRecord]) -> None:
    report.problems_added += len(rows.by_table[trace_rows.PROBLEM])
    report.traces_added += len(rows.by_table[trace_rows.TRACE])
    report.steps_added += len(rows.steps)
    report.submissions_added += len(rows.by_table[trace_rows.SUBMISSION])
    report.residues += sum(record.residue is not None for record, _ in numbered)
    report.withdrawn_met += traces.withdrawn_met


def _register_benchmark_problems(state: LoadState, numbered: list[NumberedRecord], now: dt.datetime) -> None:
    """Add all problems of a benchmark file to its list, including those that the project already had."""
    if state.source.purpose == SourcePurpose.BENCHMARK:
        digests = {trace_rows.digest_normalized_problem(record.problem) for record, _ in numbered}
        state.report.benchmark_problems += benchmarks.register_problems(
            source=state.source, normal_digests=digests, now=now
        )


def _enqueue_traces(project: Project, traces: list[TraceRef], now: dt.datetime) -> int:
    """Queue traces: held-out ones in a sampling source of their own, the others for uniform sampling."""
    reserve = [trace.pk for trace in traces if trace.is_reserve]
    others = [trace.pk for trace in traces if not trace.is_reserve]
    return sum(
        queue.enqueue_new(project_id=project.pk, arm=arm, trace_ids=ids, slots=project.overlap, now=now)
        for arm, ids in ((SamplingSource.RESERVE, reserve), (SamplingSource.UNIFORM, others))
    )


def split_chunks(records: Iterable[TraceRecord | BadLine], size: int) -> Iterator[list[TraceRecord | BadLine]]:
    iterator = iter(records)
    while part := list(islice(iterator, size)):
        yield part


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Pause garbage collection: a chunk makes many lists and tuples but no cycles, and collecting takes a third of the
    time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


# Make gold, instead of submissions, of the ratings in a file.


_CONCLUSIVE_ENDS = ("solution", "found_error", None)


@dataclass
class ImportedAnswers:
    """The combined answers of all submissions of one trace."""

    first_errors: list[int | None] = field(default_factory=list)
    ratings: dict[int, int | None] = field(default_factory=dict)  # by option; None if two submissions differ


def _make_gold(state: LoadState, numbered: Sequence[NumberedRecord], traces: TraceRows, now: dt.datetime) -> list[int]:
    """Make gold of every trace whose ratings determine the first error, and queue it. Return the ids of the traces.

    Existing gold is not changed.
    """
    traces.fetch_steps(traces.by_record)
    known: dict[int, ImportedAnswers] = {}
    for (record, _), trace in zip(numbered, traces.by_record, strict=True):
        for submission in record.submissions:
            state.report.not_gold += not _collect_ratings(known, record, submission, trace)
    active = Gold.objects.active().filter(trace__in=known, use=state.gold_use)
    existing = dict(active.values_list("trace_id", "accepted_first_errors"))
    new_ids = []
    for pk, answers in known.items():
        if pk in existing:
            state.report.gold_differs += set(existing[pk]) != set(answers.first_errors)
            continue
        make_gold(
            trace=Trace(pk=pk, project=state.project),
            use=state.gold_use,
            accepted_first_errors=answers.first_errors,
            ratings={option: rating for option, rating in answers.ratings.items() if rating is not None},
            by=state.by,
            now=now,
        )
        new_ids.append(pk)
    state.report.gold_made += len(new_ids)
    if state.enqueues and new_ids:
        enqueue_gold(project_id=state.project.pk, use=state.gold_use, trace_ids=new_ids, now=now)
    return new_ids


def _collect_ratings(
    known: dict[int, ImportedAnswers], record: TraceRecord, submission: SubmissionRecord, trace: TraceRef
) -> bool:
    """Add the answers of a submission. Returns False if they are inconclusive: given up, unfinished, or live."""
    if trace.kind != PREGENERATED or submission.finish_reason not in _CONCLUSIVE_ENDS:
        return False
    path = {turn.position: rating for turn in submission.turns if (rating := turn.path_rating()) is not None}
    first = min((position for position, rating in path.items() if rating == -1), default=None)
    is_complete = submission.finish_reason == "solution" or len(path) >= len(trace.steps)
    if not path or (not is_complete if first is None else not _is_rateable(record, first)):
        return False
    answers = known.setdefault(trace.pk, ImportedAnswers())
    if first not in answers.first_errors:
        answers.first_errors.append(first)
    for turn in submission.turns:
        _collect_option_ratings(answers, turn, trace.steps.get(turn.position))
    return True


def _is_rateable(record: TraceRecord, position: int) -> bool:
    return position < len(record.steps) and record.steps[position].is_rateable


def _collect_option_ratings(answers: ImportedAnswers, turn: TurnRecord, step: StepRef | None) -> None:
    """Add the ratings of the trace's own options. Others were only shown to this rater."""
    for judgment in turn.shown or ():
        if step and judgment.rating is not None and judgment.text in step.texts:
            option = step.option_ids[step.texts.index(judgment.text)]
            agrees = answers.ratings.get(option, judgment.rating) == judgment.rating
            answers.ratings[option] = judgment.rating if agrees else None


# Find problems of a file that are similar to other problems of the project.


MAX_PROBLEMS = 200_000  # of a project; more would need too much memory
EXAMPLES = 5
_TEXTS_AT_ONCE = 200


def find_similar_problems(
    source: Source, progress: JobProgress
) -> Generator[JobProgress, None, NearDuplicateSummary | None]:
    """Yield progress, then return a summary, or None if the project has too many problems."""
    problems = Problem.objects.filter(project=source.project_id)
    if problems.count() > MAX_PROBLEMS:
        return None
    collection: TextCollection[int] = TextCollection()
    ours: set[int] = set()
    rows = paging.iterate_by_key(problems, "text", "source_id")
    while part := list(islice(rows, _TEXTS_AT_ONCE)):
        collection.add({pk: text for pk, text, _ in part})
        ours.update(pk for pk, _, source_id in part if source_id == source.pk)
        yield progress
    return _summarize_groups(collection.groups(), ours)


def _summarize_groups(groups: dict[int, int], ours: set[int]) -> NearDuplicateSummary:
    sizes = Counter(groups.values())
    similar = [pk for pk in sorted(ours) if sizes[groups[pk]] > 1]
    firsts = list(dict.fromkeys(groups[pk] for pk in similar))
    summary = NearDuplicateSummary(len(similar), len(firsts))
    for first in firsts[:EXAMPLES]:
        pair = [pk for pk, group in groups.items() if group == first][:2]
        texts = dict(Problem.objects.filter(pk__in=pair).values_list("pk", "text"))
        summary.examples.append([texts[pk][:200] for pk in pair])
    return summary


# Sources of traces: one row for each imported file, or for each program that adds traces.


def ensure_source(
    *,
    project: Project,
    name: str,
    format: str,
    now: dt.datetime,
    sha256: str = "",
    licence: str = "",
    statement: str = "",
    purpose: str = SourcePurpose.RATE,
    labels_are: str = ImportedLabelKind.JUDGMENTS,
    labels_by: str = "",
) -> Source:
    """Return the source of a file in a project, created on its first import.

    Importing it again updates the source and clears `undone_at`. An empty licence or statement keeps the earlier one.
    """
    fields = {"format": format, "purpose": purpose, "labels_are": labels_are, "labels_by": labels_by[:160]}
    stated = {"licence": licence[:200], "statement": statement}
    source, is_new = Source.objects.get_or_create(
        project=project, name=name[-500:], sha256=sha256, defaults={**fields, **stated, "added_at": now}
    )
    fields |= {key: value for key, value in stated.items() if value}
    if not is_new and (source.undone_at or any(getattr(source, key) != value for key, value in fields.items())):
        Source.objects.filter(pk=source.pk).update(**fields, undone_at=None)
        source.refresh_from_db()
    return source


def save_report(*, source: Source, report: dict[str, Any], now: dt.datetime) -> None:
    Source.objects.filter(pk=source.pk).update(report=report, reported_at=now, undone_at=None)
