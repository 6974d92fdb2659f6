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
from events import log
from jobs.runner import Chunk, Progress
from labeling import benchmarks, quality, queue
from labeling.importing import bulk
from labeling.importing.traces import UNDONE
from labeling.models import Assignment, Draw, Problem, Source, Submission, Trace

_AT_ONCE = 200  # traces in a transaction


class Undone(Struct):
    """What came of it so far. A job carries it as its checkpoint."""

    after: int = 0  # the trace up to which it is done
    removed: int = 0
    withdrawn: int = 0
    problems_removed: int = 0


def take_back(source: Source, *, by: User | None, checkpoint: dict[str, Any]) -> Iterator[Chunk]:
    """Functions that each write a few traces, then one that ends it."""
    undone = convert(checkpoint, Undone) if checkpoint else Undone()
    total = undone.removed + undone.withdrawn + source.traces.filter(pk__gt=undone.after).count()
    while ids := _next(source, undone.after, _AT_ONCE):
        yield partial(_take_back, source, ids, undone, total, by)
    yield partial(_finish, source, undone, by)


def _next(source: Source, after: int, size: int) -> list[int]:
    return list(source.traces.filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)[:size])


def _take_back(
    source: Source, ids: Sequence[int], undone: Undone, total: int, by: User | None, now: dt.datetime
) -> Progress:
    bulk.lock(source.project_id)
    # Withdrawn first: nobody gets one of them between the question whether it was opened and the answer.
    queue.withdraw(trace_ids=ids, now=now, reason=UNDONE, by=by, tells_of_each=False)
    untouched = _untouched(ids)
    removed = _remove(untouched, now)
    undone.removed += removed
    undone.withdrawn += len(ids) - removed
    undone.after = ids[-1]
    return _progress(undone, total)


def _untouched(ids: Sequence[int]) -> list[int]:
    assignments = Assignment.objects.filter(trace=OuterRef("pk"))
    submissions = Submission.objects.filter(assignment__trace=OuterRef("pk"))
    opened = assignments.filter(~Q(opened_at=None) | Q(state="submitted"))
    traces = Trace.objects.filter(~Exists(opened), ~Exists(submissions), pk__in=ids)
    return list(traces.filter(~Exists(Draw.objects.filter(trace=OuterRef("pk")))).values_list("pk", flat=True))


def _remove(ids: Sequence[int], now: dt.datetime) -> int:
    """With what only the queue and the leads said of them. What another room still needs stays, withdrawn."""
    quality.forget(trace_ids=ids, now=now)
    Assignment.objects.filter(trace_id__in=ids).delete()
    try:
        Trace.objects.filter(pk__in=ids).delete()
    except ProtectedError as error:
        needed = {getattr(row, "trace_id", None) for row in error.protected_objects}
        ids = [pk for pk in ids if pk not in needed]
        Trace.objects.filter(pk__in=ids).delete()
    return len(ids)


def _finish(source: Source, undone: Undone, by: User | None, now: dt.datetime) -> Progress:
    bulk.lock(source.project_id)
    quality.count_arrivals_anew(project_id=source.project_id)
    quality.count_figures_again(project_id=source.project_id, now=now)
    empty = Problem.objects.filter(~Exists(Trace.objects.filter(problem=OuterRef("pk"))), source=source)
    undone.problems_removed = empty.count()
    empty.delete()
    listed = benchmarks.forget(source=source, now=now)
    Source.objects.filter(pk=source.pk).update(undone_at=now)
    counts = {"removed": undone.removed, "withdrawn": undone.withdrawn, "problems": undone.problems_removed}
    log.append(
        what="import.undone",
        by=by,
        now=now,
        project=source.project_id,
        subject=f"source:{source.pk}",
        detail={**counts, "listed": listed},
    )
    return _progress(undone, undone.removed + undone.withdrawn)


def _progress(undone: Undone, total: int) -> Progress:
    counts = to_builtins(undone)
    return Progress(undone.removed + undone.withdrawn, total, counts, {"undone": counts})
