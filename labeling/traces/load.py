"""Load records into the database: problems, traces, steps, options, and the submissions of the file.

Imported submissions are complete, marked `imported`, and never changed again. No other edit can conflict with them, so
they are inserted in bulk instead of through `labeling.assignments`.
"""

import datetime as dt
import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

from django.db import transaction

from accounts.models import User
from formats import normalization
from formats.records import PREGENERATED, BadLine, TraceRecord
from labeling import benchmarks, queue
from labeling.models import Project, Source
from labeling.models.gold import GoldUse
from labeling.models.problem import SourcePurpose
from labeling.models.queue import SamplingSource
from labeling.quality.gold import enqueue_gold
from labeling.quality.resolution_state import mark_due, mark_imported_due
from labeling.traces import bulk_insert, identity, imported_gold
from labeling.traces.import_report import ImportReport
from labeling.traces.import_rows import ImportRows, NumberedRecord
from labeling.traces.labelers import LabelsKind
from labeling.traces.submission_rows import SubmissionRows
from labeling.traces.trace_rows import TraceRef, TraceRows

CHUNK_SIZE = 200


class LoadState:
    """The state of the import of one file between its chunks."""

    def __init__(
        self,
        *,
        project: Project,
        source: Source,
        labels: LabelsKind = "judgments",
        enqueues: bool = True,
        gold_use: GoldUse = GoldUse.HIDDEN,
        by: User | None = None,
        report: ImportReport | None = None,
    ) -> None:
        self.project = project
        self.source = source
        self.labels = labels
        self.enqueues = enqueues and source.purpose != SourcePurpose.BENCHMARK
        self.gold_use = gold_use
        self.by = by
        self.counts_records = report is None  # a report given already contains the counts of the scan
        self.report = report or ImportReport()
        self._occurrences = identity.OccurrenceCounter()

    def number(self, record: TraceRecord) -> NumberedRecord:
        """Add how often the record occurred before in the file, which is part of its identity."""
        return NumberedRecord(record, self._occurrences.next_of(record.digest))

    def skip(self, record: TraceRecord | BadLine) -> None:
        """Number a record that is already imported, when an import resumes."""
        if isinstance(record, TraceRecord):
            self.number(record)


def load_records(
    *,
    project: Project,
    source: Source,
    records: Iterable[TraceRecord | BadLine],
    now: dt.datetime,
    labels: LabelsKind = "judgments",
    enqueues: bool = True,
    chunk: int = CHUNK_SIZE,
) -> ImportReport:
    """Load all records, one chunk per transaction. Loading them again adds nothing."""
    state = LoadState(project=project, source=source, labels=labels, enqueues=enqueues)
    for part in split_chunks(records, chunk):
        load_chunk(state=state, records=part, now=now)
    return state.report


def load_chunk(*, state: LoadState, records: Iterable[TraceRecord | BadLine], now: dt.datetime) -> None:
    """Load one chunk in one transaction. New traces without ratings are added to the queue."""
    with _garbage_collection_paused(), transaction.atomic():
        numbered = list(_number_good_records(state, records))
        bulk_insert.lock_project_import(state.project.pk)
        rows = ImportRows()
        traces = TraceRows(state.project, state.source, now, rows)
        traces.find_or_add(numbered)
        submissions = SubmissionRows(state.project, now, rows)
        if state.labels not in ("gold", "none"):
            submissions.add_new(numbered, traces)
        rows.insert()
        mark_imported_due(trace_ids=submissions.with_enough_votes, now=now)
        mark_due(trace_ids=submissions.with_machine_ratings, now=now)
        if traces.undone:  # before gold is queued: withdrawn traces are not queued
            queue.reinstate_traces(trace_ids=traces.undone, now=now, reason="imported again", by=state.by)
        gold = _make_gold(state, numbered, traces, now) if state.labels == "gold" else set()
        rated = submissions.rated | gold
        if state.enqueues:
            unrated = [trace for trace in traces.added if trace.kind == PREGENERATED and trace.pk not in rated]
            state.report.queued += _enqueue_traces(state.project, unrated, now)
        _register_benchmark_problems(state, numbered, now)
    state.report.count_added(rows, numbered)
    state.report.withdrawn_met += traces.withdrawn_met


def _make_gold(state: LoadState, numbered: list[NumberedRecord], traces: TraceRows, now: dt.datetime) -> set[int]:
    """Make gold of the ratings and queue it."""
    gold_ids = imported_gold.make_gold_from_ratings(
        project=state.project,
        use=state.gold_use,
        numbered=numbered,
        traces=traces,
        report=state.report,
        by=state.by,
        now=now,
    )
    if state.enqueues and gold_ids:
        enqueue_gold(project_id=state.project.pk, use=state.gold_use, trace_ids=gold_ids, now=now)
    return set(gold_ids)


def _register_benchmark_problems(state: LoadState, numbered: list[NumberedRecord], now: dt.datetime) -> None:
    """Add all problems of a benchmark file to its list, including those that the project already had."""
    if state.source.purpose == SourcePurpose.BENCHMARK:
        digests = {normalization.digest_normalized(record.problem.text) for record, _ in numbered}
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
def _garbage_collection_paused() -> Iterator[None]:
    """Pause garbage collection: a chunk makes many tuples but no cycles, and collecting takes a fifth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _number_good_records(state: LoadState, records: Iterable[TraceRecord | BadLine]) -> Iterator[NumberedRecord]:
    for record in records:
        if isinstance(record, BadLine):
            if state.counts_records:
                state.report.count_bad_line(record)
        else:
            if state.counts_records:
                state.report.count_record(record)
            yield state.number(record)
