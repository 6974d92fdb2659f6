"""Records into rows. Alone changes Source, Provenance, Problem, Trace, Step, Option and Part.

It also inserts submissions that come with a file, with their assignments, turns and judgments: whole, finished, marked
`imported`, and never touched again. That is not judging, where each write meets others; it is why these rows need not
pass through `labeling.assignments` one by one.
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
    """One file on its way in: what has to be remembered from chunk to chunk."""

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
        self.sees = report is None  # otherwise the file was looked through, and counted, before
        self.report = report or ImportReport()
        self._occurrences = identity.OccurrenceCounter()

    def number(self, record: TraceRecord) -> NumberedRecord:
        """How often this record came before in the file: part of what it is. A resumed import numbers what it skips."""
        return NumberedRecord(record, self._occurrences.next_of(record.digest))

    def skip(self, record: TraceRecord | BadLine) -> None:
        """Go past what an import that broke off has brought in already."""
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
    """Everything that `records` gives, a chunk a transaction. Doing it again adds nothing."""
    loading = LoadState(project=project, source=source, labels=labels, enqueues=enqueues)
    for part in split_chunks(records, chunk):
        load_chunk(loading=loading, records=part, now=now)
    return loading.report


def load_chunk(*, loading: LoadState, records: Iterable[TraceRecord | BadLine], now: dt.datetime) -> None:
    """One transaction. New traces that nobody has rated yet are handed to the queue."""
    with _collection_paused(), transaction.atomic():
        numbered = list(_number_good_records(loading, records))
        bulk_insert.lock_project_import(loading.project.pk)
        rows = ImportRows()
        traces = TraceRows(loading.project, loading.source, now, rows)
        traces.place(numbered)
        submissions = SubmissionRows(loading.project, now, rows)
        if loading.labels not in ("gold", "none"):
            submissions.place(numbered, traces)
        rows.insert()
        mark_imported_due(trace_ids=submissions.read_enough, now=now)
        mark_due(trace_ids=submissions.of_machines, now=now)
        if traces.undone:  # what stays withdrawn is put into no lane, not into that of gold either
            queue.reinstate_traces(trace_ids=traces.undone, now=now, reason="imported again", by=loading.by)
        gold = _make_gold(loading, numbered, traces, now) if loading.labels == "gold" else set()
        known = submissions.rated | gold
        if loading.enqueues:
            unrated = [trace for trace in traces.added if trace.kind == PREGENERATED and trace.pk not in known]
            loading.report.queued += _enqueue_traces(loading.project, unrated, now)
        _register_benchmark_problems(loading, numbered, now)
    loading.report.add(rows, numbered)
    loading.report.withdrawn_met += traces.withdrawn_met


def _make_gold(loading: LoadState, numbered: list[NumberedRecord], traces: TraceRows, now: dt.datetime) -> set[int]:
    """Known answers, each into the lane that its use has."""
    made = imported_gold.make_gold_from_ratings(
        project=loading.project,
        use=loading.gold_use,
        numbered=numbered,
        traces=traces,
        report=loading.report,
        by=loading.by,
        now=now,
    )
    if loading.enqueues and made:
        enqueue_gold(project_id=loading.project.pk, use=loading.gold_use, trace_ids=made, now=now)
    return set(made)


def _register_benchmark_problems(loading: LoadState, numbered: list[NumberedRecord], now: dt.datetime) -> None:
    """The problems of a benchmark stand on its list, also those that the project had before."""
    if loading.source.purpose == SourcePurpose.BENCHMARK:
        digests = {normalization.digest_normalized(record.problem.text) for record, _ in numbered}
        loading.report.benchmark_problems += benchmarks.register_problems(
            source=loading.source, normal_digests=digests, now=now
        )


def _enqueue_traces(project: Project, traces: list[TraceRef], now: dt.datetime) -> int:
    """What is set aside for evaluation has an arm of its own; the policy that draws the rest knows no labels yet."""
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
def _collection_paused() -> Iterator[None]:
    """A chunk makes many tuples and no cycles: looking for cycles meanwhile takes a fifth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _number_good_records(loading: LoadState, records: Iterable[TraceRecord | BadLine]) -> Iterator[NumberedRecord]:
    for record in records:
        if isinstance(record, BadLine):
            if loading.sees:
                loading.report.refuse(record)
        else:
            if loading.sees:
                loading.report.see(record)
            yield loading.number(record)
