"""The traces that headline figures of a project rest on: a simple random sample of its pool, whoever drew them.

Reads alone. The walk is that of the uniform lane, from its first day on: what was read before the first batch, or
beside one, came down the same order.
"""

import numpy as np

from labeling.models import Assignment, Draw, Project, QueueEntry
from labeling.models.assignment import Population, Purpose
from labeling.models.queue import Arm
from labeling.models.trace import TraceKind
from prm import pools
from prm.selection import audit


def of(project: Project) -> set[int]:
    """The audit slice (`prm.selection.audit`): headline agreement, error rates, and comparisons of arms read these."""
    traces = project.traces.filter(withdrawn_at=None, kind=TraceKind.PREGENERATED, problem__is_reserve=False)
    queued = QueueEntry.objects.filter(lane__project=project, lane__arm__in=[Arm.UNIFORM, Arm.POLICY, Arm.TOP_UP])
    pool = sorted(traces.filter(pk__in=queued.values("trace_id")).values_list("pk", flat=True))
    drawn, uniform = _drawn(project)
    ids = np.array(pool, dtype=np.int64)
    places = np.array([pools.place(project.pk, trace) for trace in pool], dtype=np.float64)
    is_in = audit.in_slice(
        places=places,
        is_drawn=np.isin(ids, np.array(sorted(drawn), dtype=np.int64)),
        is_uniform=np.isin(ids, np.array(sorted(uniform), dtype=np.int64)),
    )
    return set(ids[is_in].tolist())


def _drawn(project: Project) -> tuple[set[int], set[int]]:
    """Traces that a draw or a reader has taken, and those of them that the uniform walk took."""
    draws = dict(Draw.objects.filter(project=project).order_by("pk").values_list("trace_id", "arm"))
    begun = Assignment.objects.filter(project=project, purpose=Purpose.WORK, opened_at__isnull=False)
    begun = begun.filter(population=Population.SCHEDULED)
    lanes = dict(begun.order_by("-pk").values_list("trace_id", "lane__arm"))
    drawn = set(draws) | set(lanes)
    walked = {trace for trace, arm in lanes.items() if arm == Arm.UNIFORM and trace not in draws}
    return drawn, walked | {trace for trace, arm in draws.items() if arm == Arm.UNIFORM}


def of_id(project_id: int) -> set[int]:
    """The same, as `labeling.quality` asks for it when it computes the headline."""
    return of(Project.objects.get(pk=project_id))
