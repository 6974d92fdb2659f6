"""Undo an import: withdraw all its traces within seconds, then remove those that no one has opened. One event logs the
result. The job never runs while the import itself is running.

The undo takes effect with the first part. The second part takes longer, because PostgreSQL checks every removed row for
references. It skips traces that are no longer withdrawn, because their file was imported again meanwhile.

Submitted labels are never deleted, whether they were made here or imported. A trace that a policy drew is withdrawn and
not removed: the probabilities of later draws depend on it.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from django.db.models import CASCADE, Exists, ForeignObjectRel, OuterRef, Q
from msgspec import Struct, convert, to_builtins

import rawsql
from accounts.models import User
from events import audit_log
from jobs import control
from jobs.failures import JobFailed
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling import benchmarks, queue
from labeling.models import Assignment, Consensus, ManifestRow, Problem, Source, Step, Trace, TraceDraw
from labeling.models.trace import TraceQuerySet
from labeling.quality.gold import delete_unopened_gold
from labeling.quality.project_stats import mark_existing_stats_stale, reset_trace_count
from labeling.traces import stored_images
from labeling.traces.trace_rows import UNDONE_REASON, lock_project_import
from rawsql import foreign_keys

KIND = "labeling.undo_import"
IMPORT_KIND = "labeling.bring_in"  # of the jobs of `import_job`
_CHUNK_TRACES = 1000  # per transaction


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

    is_withdrawn: bool = False  # all traces
    after: int = 0  # the last trace that is withdrawn, then the last one that is removed or kept
    removed: int = 0
    withdrawn: int = 0
    problems_removed: int = 0


def undo_source(source: Source, *, by: User | None, checkpoint: dict[str, Any]) -> Iterator[Chunk]:
    """Yield functions that each undo a part."""
    undone = convert(checkpoint, UndoProgress) if checkpoint else UndoProgress()
    total = undone.removed + undone.withdrawn + source.traces.count()
    if not undone.is_withdrawn:
        while ids := _next_trace_ids(source.traces.available(), undone.after):
            yield partial(_withdraw_chunk, source, ids, undone, total, by)
        yield partial(_take_effect, source, undone, total)
    total = undone.removed + undone.withdrawn + source.traces.filter(pk__gt=undone.after).count()
    while ids := _next_trace_ids(source.traces.withdrawn(), undone.after):
        yield partial(_remove_chunk, source, ids, undone, total)
    yield partial(_finish_undo, source, undone, by)


def _next_trace_ids(traces: TraceQuerySet, after: int) -> list[int]:
    return list(traces.filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)[:_CHUNK_TRACES])


def _withdraw_chunk(
    source: Source, ids: Sequence[int], undone: UndoProgress, total: int, by: User | None, now: dt.datetime
) -> JobProgress:
    lock_project_import(source.project_id)
    queue.withdraw_traces(trace_ids=ids, now=now, reason=UNDONE_REASON, by=by, logs_each=False)
    undone.after = ids[-1]
    return _make_progress(undone, total)


def _take_effect(source: Source, undone: UndoProgress, total: int, now: dt.datetime) -> JobProgress:
    lock_project_import(source.project_id)
    undone.is_withdrawn, undone.after = True, 0
    _mark_figures_stale(source, now)
    Source.objects.filter(pk=source.pk).update(undone_at=now)
    return _make_progress(undone, total)


def _mark_figures_stale(source: Source, now: dt.datetime) -> None:
    reset_trace_count(project_id=source.project_id)
    mark_existing_stats_stale(project_id=source.project_id, now=now)


def _remove_chunk(
    source: Source, ids: Sequence[int], undone: UndoProgress, total: int, now: dt.datetime
) -> JobProgress:
    lock_project_import(source.project_id)
    # Locked, so that no one reinstates a trace after the check that it is withdrawn.
    locked = source.traces.withdrawn().filter(pk__in=ids).order_by("pk").select_for_update(no_key=True)
    withdrawn = list(locked.values_list("pk", flat=True))
    removed = _find_untouched(withdrawn)
    if removed:
        _remove_traces(removed, now)
    undone.removed += len(removed)
    undone.withdrawn += len(withdrawn) - len(removed)
    undone.problems_removed += _remove_problems(source, removed)
    undone.after = ids[-1]
    return _make_progress(undone, total)


class _RemovableTrace(NamedTuple):
    pk: int
    problem_id: int


def _find_untouched(ids: Sequence[int]) -> list[_RemovableTrace]:
    """Return the traces that no one has opened and that no record refers to, which must be kept."""
    of_trace = {"trace": OuterRef("pk")}
    opened = Assignment.objects.filter(~Q(opened_at=None) | Q(state="submitted") | Q(submissions__isnull=False))
    kept = [rows.filter(**of_trace) for rows in (opened, TraceDraw.objects, Consensus.objects, ManifestRow.objects)]
    traces = Trace.objects.filter(*(~Exists(rows) for rows in kept), pk__in=ids)
    return [_RemovableTrace(*row) for row in traces.values_list("pk", "problem_id")]


def _remove_traces(traces: list[_RemovableTrace], now: dt.datetime) -> None:
    """Remove traces with their unopened gold and assignments."""
    ids = [trace.pk for trace in traces]
    delete_unopened_gold(trace_ids=ids, now=now)
    Assignment.objects.filter(trace_id__in=ids).delete()
    # Django would load every trace, step and option to find the rows that refer to it.
    for statement in (_DELETE_PARTS, _DELETE_ENTRIES):
        rawsql.fetch_rows(statement, {"traces": ids})
    foreign_keys.delete_rows("labeling_option", _DELETE_OPTIONS, {"traces": ids})
    foreign_keys.delete_rows("labeling_step", _DELETE_STEPS, {"traces": ids})
    for relation in Trace._meta.get_fields(include_hidden=True):
        if isinstance(relation, ForeignObjectRel) and relation.on_delete is CASCADE and relation.related_model != Step:
            relation.related_model._base_manager.filter(trace_id__in=rawsql.values_subquery(ids)).delete()
    foreign_keys.delete_rows("labeling_trace", _DELETE_TRACES, {"traces": ids})


def _remove_problems(source: Source, removed: list[_RemovableTrace]) -> int:
    """Remove the problems of the file that have no trace any more."""
    ids = sorted({trace.problem_id for trace in removed})
    rawsql.fetch_rows(_DELETE_PROBLEM_IMAGES, {"source": source.pk, "problems": ids})
    return len(foreign_keys.delete_rows("labeling_problem", _DELETE_PROBLEMS, {"source": source.pk, "problems": ids}))


_DELETE_PARTS = """
DELETE FROM labeling_optionpart part USING labeling_option option, labeling_step step
WHERE part.option_id = option.id AND option.step_id = step.id AND step.trace_id = ANY (%(traces)s)"""
_DELETE_OPTIONS = """
DELETE FROM labeling_option option USING labeling_step step
WHERE option.step_id = step.id AND step.trace_id = ANY (%(traces)s)
RETURNING option.id"""
_DELETE_STEPS = """
DELETE FROM labeling_step WHERE trace_id = ANY (%(traces)s)
RETURNING id"""
_DELETE_ENTRIES = """
DELETE FROM labeling_queueentry WHERE trace_id = ANY (%(traces)s)"""
_DELETE_TRACES = """
DELETE FROM labeling_trace WHERE id = ANY (%(traces)s)
RETURNING id"""
_DELETE_PROBLEM_IMAGES = """
DELETE FROM labeling_problemimage USING labeling_problem problem
WHERE problem_id = problem.id AND problem.id = ANY (%(problems)s) AND source_id = %(source)s
  AND NOT EXISTS (SELECT FROM labeling_trace trace WHERE trace.problem_id = problem.id)"""
_DELETE_PROBLEMS = """
DELETE FROM labeling_problem problem
WHERE id = ANY (%(problems)s) AND source_id = %(source)s
  AND NOT EXISTS (SELECT FROM labeling_trace trace WHERE trace.problem_id = problem.id)
RETURNING id"""


def _finish_undo(source: Source, undone: UndoProgress, by: User | None, now: dt.datetime) -> JobProgress:
    lock_project_import(source.project_id)
    _mark_figures_stale(source, now)
    # Those whose traces came from other files.
    without_trace = ~Exists(Trace.objects.filter(problem=OuterRef("pk")))
    empty = list(Problem.objects.filter(without_trace, source=source).values_list("pk", flat=True))
    undone.problems_removed += Problem.objects.filter(pk__in=empty).delete()[1].get("labeling.Problem", 0)
    stored_images.delete_unused_images(project_id=source.project_id)
    listed = benchmarks.forget_source(source=source, now=now)
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
