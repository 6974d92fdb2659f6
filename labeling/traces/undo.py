"""Undo an import: remove the traces that no one has opened, and withdraw the others. One event logs the result. The job
never runs while the import itself is running.

Submitted labels are never deleted, whether they were made here or imported. A trace that a policy drew is withdrawn and
not removed: the probabilities of later draws depend on it.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from django.db.models import Exists, OuterRef, ProtectedError, Q
from msgspec import Struct, convert, to_builtins

from accounts.models import User
from events import audit_log
from jobs import control
from jobs.failures import JobFailed
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling import benchmarks, queue
from labeling.models import Assignment, Problem, Source, Submission, Trace, TraceDraw
from labeling.quality.gold import delete_unopened_gold
from labeling.quality.project_stats import mark_existing_stats_stale, reset_trace_count
from labeling.traces.trace_rows import UNDONE_REASON, lock_project_import

KIND = "labeling.undo_import"
IMPORT_KIND = "labeling.bring_in"  # of the jobs of `import_job`
_CHUNK_TRACES = 200  # per transaction


class ImportStillRunning(JobFailed):
    """The import of the file has not finished."""


def request_undo(*, source: Source, by: User | None, now: dt.datetime) -> Job:
    """Queue the undo of an import."""
    _refuse_while_importing(source)
    return control.request_job(
        kind=KIND, subject=f"project:{source.project_id}", arguments={"source": source.pk}, by=by, now=now
    )


def chunks(job: Job) -> Iterator[JobProgress | Chunk]:
    """Yield the remaining work of the job."""
    source = Source.objects.select_related("project").get(pk=job.arguments["source"])
    yield from run_undo(source, by=job.asked_by, checkpoint=job.checkpoint)


def run_undo(source: Source, *, by: User | None, checkpoint: dict[str, Any]) -> Iterator[JobProgress | Chunk]:
    _refuse_while_importing(source)
    yield from undo_source(source, by=by, checkpoint=checkpoint)


def _refuse_while_importing(source: Source) -> None:
    is_of_source = Q(arguments__source=source.pk) | Q(result__source=source.pk)
    if Job.objects.unfinished().filter(is_of_source, kind=IMPORT_KIND).exists():
        raise ImportStillRunning("this import is still running: cancel it first")


class UndoProgress(Struct):
    """The result so far, which is also the checkpoint of the job."""

    after: int = 0  # the last trace that is done
    removed: int = 0
    withdrawn: int = 0
    problems_removed: int = 0


def undo_source(source: Source, *, by: User | None, checkpoint: dict[str, Any]) -> Iterator[Chunk]:
    """Yield functions that each undo a few traces, then one that finishes the undo."""
    undone = convert(checkpoint, UndoProgress) if checkpoint else UndoProgress()
    total = undone.removed + undone.withdrawn + source.traces.filter(pk__gt=undone.after).count()
    while ids := _next_trace_ids(source, undone.after, _CHUNK_TRACES):
        yield partial(_undo_chunk, source, ids, undone, total, by)
    yield partial(_finish_undo, source, undone, by)


def _next_trace_ids(source: Source, after: int, size: int) -> list[int]:
    return list(source.traces.filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)[:size])


def _undo_chunk(
    source: Source, ids: Sequence[int], undone: UndoProgress, total: int, by: User | None, now: dt.datetime
) -> JobProgress:
    lock_project_import(source.project_id)
    # Withdrawn first, so that no rater can open a trace after the check that no one has.
    queue.withdraw_traces(trace_ids=ids, now=now, reason=UNDONE_REASON, by=by, logs_each=False)
    untouched = _find_untouched(ids)
    removed = _remove_traces(untouched, now)
    undone.removed += removed
    undone.withdrawn += len(ids) - removed
    undone.after = ids[-1]
    return _make_progress(undone, total)


def _find_untouched(ids: Sequence[int]) -> list[int]:
    assignments = Assignment.objects.filter(trace=OuterRef("pk"))
    submissions = Submission.objects.filter(assignment__trace=OuterRef("pk"))
    opened = assignments.filter(~Q(opened_at=None) | Q(state="submitted"))
    traces = Trace.objects.filter(~Exists(opened), ~Exists(submissions), pk__in=ids)
    return list(traces.filter(~Exists(TraceDraw.objects.filter(trace=OuterRef("pk")))).values_list("pk", flat=True))


def _remove_traces(ids: Sequence[int], now: dt.datetime) -> int:
    """Remove traces with their unopened gold and assignments. Traces that other rows reference stay withdrawn."""
    delete_unopened_gold(trace_ids=ids, now=now)
    Assignment.objects.filter(trace_id__in=ids).delete()
    try:
        Trace.objects.filter(pk__in=ids).delete()
    except ProtectedError as error:
        needed = {getattr(row, "trace_id", None) for row in error.protected_objects}
        ids = [pk for pk in ids if pk not in needed]
        Trace.objects.filter(pk__in=ids).delete()
    return len(ids)


def _finish_undo(source: Source, undone: UndoProgress, by: User | None, now: dt.datetime) -> JobProgress:
    lock_project_import(source.project_id)
    reset_trace_count(project_id=source.project_id)
    mark_existing_stats_stale(project_id=source.project_id, now=now)
    empty = Problem.objects.filter(~Exists(Trace.objects.filter(problem=OuterRef("pk"))), source=source)
    undone.problems_removed = empty.count()
    empty.delete()
    listed = benchmarks.forget_source(source=source, now=now)
    Source.objects.filter(pk=source.pk).update(undone_at=now)
    counts = {"removed": undone.removed, "withdrawn": undone.withdrawn, "problems": undone.problems_removed}
    audit_log.log_event(
        what="import.undone",
        by=by,
        now=now,
        project=source.project_id,
        subject=f"source:{source.pk}",
        detail={**counts, "listed": listed},
    )
    return _make_progress(undone, undone.removed + undone.withdrawn)


def _make_progress(undone: UndoProgress, total: int) -> JobProgress:
    counts = to_builtins(undone)
    return JobProgress(undone.removed + undone.withdrawn, total, counts, {"undone": counts})
