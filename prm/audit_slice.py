"""The traces that headline figures of a project are computed from: a simple random sample of its pool.

`prm.selection.draws.mask_audit_slice` defines it. The uniform lane follows the uniform walk from the first day on, so
traces that were opened before or beside a batch count as drawn too. Only drawn traces and the next one on the walk are
read: the cost does not depend on the size of the pool. Writes nothing.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from django.db.models import Exists, OuterRef, QuerySet

from labeling.models import Assignment, Lane, Project, QueueEntry, TraceDraw
from labeling.models.assignment import AssignmentPurpose, AssignmentState, Population
from labeling.models.queue import SamplingSource
from labeling.models.trace import TraceKind
from prm import drawable_pool
from prm.selection import draws

_PAGE = 500
_IN_POOL = {
    "trace__withdrawn_at": None,
    "trace__kind": TraceKind.PREGENERATED,
    "trace__problem__is_reserve": False,
}


def load_audit_slice(project: Project) -> set[int]:
    drawn, uniform = _drawn_traces(project)
    ids = np.array(sorted(drawn | _next_undrawn_traces(project, drawn)), dtype=np.int64)
    positions = [drawable_pool.uniform_walk_position(project.pk, trace) for trace in ids.tolist()]
    is_in_slice = draws.mask_audit_slice(
        places=np.array(positions, dtype=np.float64),
        is_drawn=np.isin(ids, np.array(sorted(drawn), dtype=np.int64)),
        is_uniform=np.isin(ids, np.array(sorted(uniform), dtype=np.int64)),
    )
    return set(ids[is_in_slice].tolist())


def load_audit_slice_by_id(project_id: int) -> set[int]:
    """Answer `labeling.quality`, which does not know this package."""
    return load_audit_slice(Project.objects.get(pk=project_id))


def _drawn_traces(project: Project) -> tuple[set[int], set[int]]:
    """Return the traces that were drawn or opened, and those of them that came from the uniform walk."""
    sources = dict(TraceDraw.objects.filter(project=project, **_IN_POOL).order_by("pk").values_list("trace_id", "arm"))
    opened = _work_assignments(project).filter(opened_at__isnull=False, population=Population.SCHEDULED)
    lanes = dict(opened.order_by("-pk").values_list("trace_id", "lane__arm"))
    by_trace = lanes | sources
    return set(by_trace), {trace for trace, source in by_trace.items() if source == SamplingSource.UNIFORM}


def _work_assignments(project: Project) -> QuerySet[Assignment]:
    """Return the assignments on traces that are or were in a lane of the ordinary work."""
    entries = QueueEntry.objects.filter(
        trace=OuterRef("trace"), lane__arm__in=[SamplingSource.UNIFORM, SamplingSource.POLICY, SamplingSource.TOP_UP]
    )
    return Assignment.objects.filter(Exists(entries), project=project, purpose=AssignmentPurpose.WORK, **_IN_POOL)


def _next_undrawn_traces(project: Project, drawn: set[int]) -> set[int]:
    """Return the first undrawn trace of the uniform lane, and those that left the lane without being opened."""
    first = next((trace for trace in _uniform_lane(project) if trace not in drawn), None)
    outside = {*_unopened_traces(project), *_returned_traces(project)} - drawn
    return outside if first is None else outside | {first}


def _uniform_lane(project: Project) -> Iterator[int]:
    """Yield the traces that are left in the uniform lane, in its order."""
    lane = Lane.objects.filter(project=project, arm=SamplingSource.UNIFORM, generation=0).first()
    entries = QueueEntry.objects.open().filter(lane=lane, **_IN_POOL).order_by("-key", "-trace_id")
    while page := list(entries.values_list("key", "trace_id")[:_PAGE]):
        yield from (trace for _, trace in page)
        entries = entries.filter(key__lt=page[-1][0])


def _unopened_traces(project: Project) -> QuerySet[Any, int]:
    """Return the traces that are assigned but not opened yet."""
    unopened = _work_assignments(project).filter(state=AssignmentState.HELD, opened_at=None)
    return unopened.values_list("trace_id", flat=True)


def _returned_traces(project: Project) -> QuerySet[Any, int]:
    """Return the traces whose assignment was returned and that wait for the next annotator."""
    entries = QueueEntry.objects.open().filter(lane__project=project, lane__arm=SamplingSource.TOP_UP, **_IN_POOL)
    return entries.values_list("trace_id", flat=True)
