"""Takes back what came of a file: traces that nobody has opened are removed, the others are handed out no more. Labels
are kept, whoever made them: what was submitted is never deleted. One event says what came of it.

A trace that was drawn for reading stays too, withdrawn: the draws after it had their probabilities beside it.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from django.db.models import Exists, OuterRef, ProtectedError, Q
from msgspec import Struct, convert, to_builtins

from accounts.models import User
from events import audit_log
from jobs.runner import Chunk, JobProgress
from labeling import benchmarks, queue
from labeling.models import Assignment, Problem, Source, Submission, Trace, TraceDraw
from labeling.quality.gold import delete_unopened_gold
from labeling.quality.project_stats import mark_existing_stats_stale
from labeling.quality.trace_counts import reset_trace_count
from labeling.traces import bulk_insert
from labeling.traces.trace_rows import UNDONE_REASON

_AT_ONCE = 200  # traces in a transaction


class UndoProgress(Struct):
    """What came of it so far. A job carries it as its checkpoint."""

    after: int = 0  # the trace up to which it is done
    removed: int = 0
    withdrawn: int = 0
    problems_removed: int = 0


def undo_source(source: Source, *, by: User | None, checkpoint: dict[str, Any]) -> Iterator[Chunk]:
    """Functions that each write a few traces, then one that ends it."""
    undone = convert(checkpoint, UndoProgress) if checkpoint else UndoProgress()
    total = undone.removed + undone.withdrawn + source.traces.filter(pk__gt=undone.after).count()
    while ids := _next_trace_ids(source, undone.after, _AT_ONCE):
        yield partial(_undo_chunk, source, ids, undone, total, by)
    yield partial(_finish_undo, source, undone, by)


def _next_trace_ids(source: Source, after: int, size: int) -> list[int]:
    return list(source.traces.filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)[:size])


def _undo_chunk(
    source: Source, ids: Sequence[int], undone: UndoProgress, total: int, by: User | None, now: dt.datetime
) -> JobProgress:
    bulk_insert.lock_project_import(source.project_id)
    # Withdrawn first: nobody gets one of them between the question whether it was opened and the answer.
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
    """With what only the queue and the leads said of them. What another room still needs stays, withdrawn."""
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
    bulk_insert.lock_project_import(source.project_id)
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
