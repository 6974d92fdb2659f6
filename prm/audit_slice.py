"""The traces that headline figures of a project rest on: a simple random sample of its pool, whoever drew them.

Reads alone. The walk is that of the uniform lane, from its first day on: what was read before the first batch, or
beside one, came down the same order. Only what was drawn is looked at, and where the walk has come to: the pool's
size costs nothing.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from django.db.models import Exists, OuterRef, QuerySet

from labeling.models import Assignment, Lane, Project, QueueEntry, TraceDraw
from labeling.models.assignment import AssignmentPurpose, AssignmentState, Population
from labeling.models.queue import SamplingSource
from labeling.models.trace import TraceKind
from prm import drawable_pool
from prm.selection import uniform_sample

_PAGE = 500
_IN_POOL = {
    "trace__withdrawn_at": None,
    "trace__kind": TraceKind.PREGENERATED,
    "trace__problem__is_reserve": False,
}


def load_audit_slice(project: Project) -> set[int]:
    """Return the audit slice, from which headline agreement, error rates and source comparisons are computed."""
    drawn, uniform = _drawn_traces(project)
    ids = np.array(sorted(drawn | _next_undrawn_traces(project, drawn)), dtype=np.int64)
    is_in = uniform_sample.mask_audit_slice(
        places=np.array(
            [drawable_pool.uniform_walk_position(project.pk, trace) for trace in ids.tolist()], dtype=np.float64
        ),
        is_drawn=np.isin(ids, np.array(sorted(drawn), dtype=np.int64)),
        is_uniform=np.isin(ids, np.array(sorted(uniform), dtype=np.int64)),
    )
    return set(ids[is_in].tolist())


def _drawn_traces(project: Project) -> tuple[set[int], set[int]]:
    """Traces that a draw or a reader has taken, and those of them that the uniform walk took."""
    draws = dict(TraceDraw.objects.filter(project=project, **_IN_POOL).order_by("pk").values_list("trace_id", "arm"))
    begun = _work_assignments(project).filter(opened_at__isnull=False, population=Population.SCHEDULED)
    lanes = dict(begun.order_by("-pk").values_list("trace_id", "lane__arm"))
    drawn = set(draws) | set(lanes)
    walked = {trace for trace, arm in lanes.items() if arm == SamplingSource.UNIFORM and trace not in draws}
    return drawn, walked | {trace for trace, arm in draws.items() if arm == SamplingSource.UNIFORM}


def _work_assignments(project: Project) -> QuerySet[Assignment]:
    """On traces that stand, or stood, in a lane of the work."""
    stands = QueueEntry.objects.filter(
        trace=OuterRef("trace"), lane__arm__in=[SamplingSource.UNIFORM, SamplingSource.POLICY, SamplingSource.TOP_UP]
    )
    return Assignment.objects.filter(Exists(stands), project=project, purpose=AssignmentPurpose.WORK, **_IN_POOL)


def _next_undrawn_traces(project: Project, drawn: set[int]) -> set[int]:
    """Where the walk goes on: the first trace in its order that nobody has drawn, and those that are on their way."""
    first = next((trace for trace in _uniform_walk(project) if trace not in drawn), None)
    aside = set(chain(_held_unopened(project), _returned_traces(project))) - drawn
    return aside if first is None else aside | {first}


def _uniform_walk(project: Project) -> Iterator[int]:
    """What is still to be had in the uniform lane, in its order."""
    lane = Lane.objects.filter(project=project, arm=SamplingSource.UNIFORM, generation=0).first()
    entries = QueueEntry.objects.open().filter(lane=lane, **_IN_POOL).order_by("-key", "-trace_id")
    while page := list(entries.values_list("key", "trace_id")[:_PAGE]):
        yield from (trace for _, trace in page)
        entries = entries.filter(key__lt=page[-1][0])


def _held_unopened(project: Project) -> QuerySet[Any, int]:
    """In somebody's hands, and not looked at yet."""
    held = _work_assignments(project).filter(state=AssignmentState.HELD, opened_at=None)
    return held.values_list("trace_id", flat=True)


def _returned_traces(project: Project) -> QuerySet[Any, int]:
    """Given back, and waiting for the next reader."""
    entries = QueueEntry.objects.open().filter(lane__project=project, lane__arm=SamplingSource.TOP_UP, **_IN_POOL)
    return entries.values_list("trace_id", flat=True)


def load_audit_slice_by_id(project_id: int) -> set[int]:
    """The same, as `labeling.quality` asks for it when it computes the headline."""
    return load_audit_slice(Project.objects.get(pk=project_id))
