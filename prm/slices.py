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

from labeling.models import Assignment, Draw, Lane, Project, QueueEntry
from labeling.models.assignment import AssignmentState, Population, Purpose
from labeling.models.queue import Arm
from labeling.models.trace import TraceKind
from prm import pools
from prm.selection import audit

_PAGE = 500
_IN_POOL = {
    "trace__withdrawn_at": None,
    "trace__kind": TraceKind.PREGENERATED,
    "trace__problem__is_reserve": False,
}


def of(project: Project) -> set[int]:
    """The audit slice (`prm.selection.audit`): headline agreement, error rates, and comparisons of arms read these."""
    drawn, uniform = _drawn(project)
    ids = np.array(sorted(drawn | _next_undrawn(project, drawn)), dtype=np.int64)
    is_in = audit.in_slice(
        places=np.array([pools.place(project.pk, trace) for trace in ids.tolist()], dtype=np.float64),
        is_drawn=np.isin(ids, np.array(sorted(drawn), dtype=np.int64)),
        is_uniform=np.isin(ids, np.array(sorted(uniform), dtype=np.int64)),
    )
    return set(ids[is_in].tolist())


def _drawn(project: Project) -> tuple[set[int], set[int]]:
    """Traces that a draw or a reader has taken, and those of them that the uniform walk took."""
    draws = dict(Draw.objects.filter(project=project, **_IN_POOL).order_by("pk").values_list("trace_id", "arm"))
    begun = _work(project).filter(opened_at__isnull=False, population=Population.SCHEDULED)
    lanes = dict(begun.order_by("-pk").values_list("trace_id", "lane__arm"))
    drawn = set(draws) | set(lanes)
    walked = {trace for trace, arm in lanes.items() if arm == Arm.UNIFORM and trace not in draws}
    return drawn, walked | {trace for trace, arm in draws.items() if arm == Arm.UNIFORM}


def _work(project: Project) -> QuerySet[Assignment]:
    """On traces that stand, or stood, in a lane of the work."""
    stands = QueueEntry.objects.filter(trace=OuterRef("trace"), lane__arm__in=[Arm.UNIFORM, Arm.POLICY, Arm.TOP_UP])
    return Assignment.objects.filter(Exists(stands), project=project, purpose=Purpose.WORK, **_IN_POOL)


def _next_undrawn(project: Project, drawn: set[int]) -> set[int]:
    """Where the walk goes on: the first trace in its order that nobody has drawn, and those that are on their way."""
    first = next((trace for trace in _walk(project) if trace not in drawn), None)
    aside = set(chain(_held(project), _returned(project))) - drawn
    return aside if first is None else aside | {first}


def _walk(project: Project) -> Iterator[int]:
    """What is still to be had in the uniform lane, in its order."""
    lane = Lane.objects.filter(project=project, arm=Arm.UNIFORM, generation=0).first()
    entries = QueueEntry.objects.open().filter(lane=lane, **_IN_POOL).order_by("-key", "-trace_id")
    while page := list(entries.values_list("key", "trace_id")[:_PAGE]):
        yield from (trace for _, trace in page)
        entries = entries.filter(key__lt=page[-1][0])


def _held(project: Project) -> QuerySet[Any, int]:
    """In somebody's hands, and not looked at yet."""
    held = _work(project).filter(state=AssignmentState.HELD, opened_at=None)
    return held.values_list("trace_id", flat=True)


def _returned(project: Project) -> QuerySet[Any, int]:
    """Given back, and waiting for the next reader."""
    entries = QueueEntry.objects.open().filter(lane__project=project, lane__arm=Arm.TOP_UP, **_IN_POOL)
    return entries.values_list("trace_id", flat=True)


def of_id(project_id: int) -> set[int]:
    """The same, as `labeling.quality` asks for it when it computes the headline."""
    return of(Project.objects.get(pk=project_id))
