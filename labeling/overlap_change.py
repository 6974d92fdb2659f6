"""Changes how often traces are read, in the middle of a project. What it will do is said before; then the option
changes at once, and a job goes through the traces that are still open."""

import datetime as dt
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from django.db import transaction

from accounts.models import User
from jobs import control
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling import queue
from labeling.models import Assignment, Project
from labeling.models.assignment import AssignmentState
from labeling.projects import lifecycle
from labeling.quality import resolution_state
from labeling.queue.lanes import WORK_SOURCES

KIND = "labeling.change_overlap"
_SIZE = 500  # traces in a transaction


class OverlapImpact(NamedTuple):
    """What a change meets, counted up to a limit. `in_hand` is with `people`: of it `begun` is rated in part and not
    submitted, `ahead` only fetched. `correcting`: submissions that are being corrected. `waiting` lies in the lanes."""

    in_hand: int
    ahead: int
    begun: int
    people: int
    correcting: int
    waiting: int
    is_more: bool


def measure_overlap_impact(*, project_id: int, at_most: int = 10_000) -> OverlapImpact:
    """Before anything changes: how much it will concern, and whom."""
    held = Assignment.objects.open().filter(project=project_id)
    open_ones = list(held.values_list("rater_id", "state", "version")[: at_most + 1])
    corrected = list(
        Assignment.objects.filter(project=project_id, reopened_at__isnull=False).values_list("rater_id", flat=True)[
            :at_most
        ]
    )
    lanes = [lane for lane in queue.lane_depths(project_id=project_id, at_most=at_most) if lane.arm in WORK_SOURCES]
    return OverlapImpact(
        in_hand=min(len(open_ones), at_most),
        ahead=sum(state == AssignmentState.HELD for _, state, _ in open_ones),
        begun=sum(version > 0 for *_, version in open_ones),
        people=len({rater for rater, *_ in open_ones} | set(corrected)),
        correcting=len(corrected),
        waiting=sum(lane.n_open for lane in lanes),
        is_more=len(open_ones) > at_most or any(lane.is_more for lane in lanes),
    )


def change_overlap(
    *, project: Project, overlap: int, overlap_limit: int, lease_seconds: int, by: User | None, now: dt.datetime
) -> Job | None:
    """Read each trace so often, and keep it so long for its rater, from now on. A trace in hand keeps a longer
    lease, and gets a longer one with its rater's next write. None where those stay: a lease needs no work."""
    is_other = (overlap, overlap_limit) != (project.overlap, project.overlap_limit)
    with transaction.atomic():
        options = {"overlap": overlap, "overlap_limit": overlap_limit, "lease_seconds": lease_seconds}
        lifecycle.change_settings(project=project, by=by, now=now, **options)
        if not is_other:
            return None
        return control.request_job(
            kind=KIND, subject=f"project:{project.pk}", arguments={"project": project.pk}, by=by, now=now
        )


def chunks(job: Job) -> Iterator[JobProgress | Chunk]:
    """The job's work. It takes the overlap as it is now: of two changes the later one wins."""
    project = Project.objects.get(pk=job.arguments["project"])
    after = job.checkpoint.get("after", 0)
    while (last := _last_of_next_chunk(project, after)) is not None:
        yield partial(_resize_chunk, project, after)
        after = last
    yield partial(_mark_traces_due, project, after)


def _mark_traces_due(project: Project, after: int, now: dt.datetime) -> JobProgress:
    """What was contested or waited for readings may be settled by now, or be given one more."""
    resolution_state.mark_unsettled_due(project_id=project.pk, now=now)
    total = project.traces.count()
    return JobProgress(total, total, {"after": after})


def _last_of_next_chunk(project: Project, after: int) -> int | None:
    keys = project.traces.available().filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)[:_SIZE]
    return max(keys, default=None)


def _resize_chunk(project: Project, after: int, now: dt.datetime) -> JobProgress:
    overlap = Project.objects.values_list("overlap", flat=True).get(pk=project.pk)
    done = queue.resize_slots(project_id=project.pk, overlap=overlap, after=after, now=now, limit=_SIZE)
    resolution_state.mark_fully_read_due(trace_ids=done.trace_ids, overlap=overlap, now=now)
    last = max(done.trace_ids, default=after)
    return JobProgress(project.traces.filter(pk__lte=last).count(), project.traces.count(), {"after": last})
