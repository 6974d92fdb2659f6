"""Change the overlap of a running project: measure the impact first, then change the setting, and resize the slots of
open traces in a job."""

import datetime as dt
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from django.db import transaction
from django.db.models import Count, QuerySet, Sum

from accounts.models import User
from jobs import control
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling import queue
from labeling.models import Assignment, Project, Settlement
from labeling.models.assignment import AssignmentState
from labeling.models.consensus import SettlementState
from labeling.projects import lifecycle
from labeling.quality import settlements, workdays
from labeling.queue.slots import WORK_SOURCES

KIND = "labeling.change_overlap"
_CHUNK = 500  # traces per transaction


class OverlapImpact(NamedTuple):
    """The effects of a change, counted up to a limit."""

    in_hand: int  # open assignments
    ahead: int  # how many of these are prefetched
    begun: int  # how many of these have ratings
    people: int  # with open assignments or corrections
    correcting: int  # submissions that are being corrected
    waiting: int  # traces in the lanes
    is_more: bool  # whether there is more than was counted


class SettledImpact(NamedTuple):
    """What a higher overlap would request if it included settled traces."""

    n_traces: int  # settled by fewer votes than the new overlap
    n_labels: int  # that they would get
    ms_per_label: int | None  # None if no time is known


def measure_settled_impact(*, project_id: int, overlap: int) -> SettledImpact:
    """Count the settled traces that a new overlap could reopen, and their additional labels."""
    reopened = _settled_below(project_id, overlap).filter(trace__queue_entries__lane__arm__in=WORK_SOURCES)
    sums = reopened.aggregate(n=Count("pk"), votes=Sum("n_votes"))
    n_labels = overlap * sums["n"] - (sums["votes"] or 0)
    return SettledImpact(sums["n"], n_labels, workdays.mean_label_time(project_id))


def _settled_below(project_id: int, overlap: int) -> QuerySet[Settlement]:
    rows = Settlement.objects.filter(project_id=project_id, state=SettlementState.SETTLED, n_votes__lt=overlap)
    return rows.filter(trace__withdrawn_at=None)


def measure_overlap_impact(*, project_id: int, at_most: int = 10_000) -> OverlapImpact:
    """Count what a change of the overlap would affect."""
    held = Assignment.objects.open().filter(project=project_id)
    open_rows = list(held.values_list("rater_id", "state", "version")[: at_most + 1])
    reopened = Assignment.objects.filter(project=project_id, reopened_at__isnull=False)
    corrected = list(reopened.values_list("rater_id", flat=True)[:at_most])
    lanes = [lane for lane in queue.lane_depths(project_id=project_id, at_most=at_most) if lane.arm in WORK_SOURCES]
    return OverlapImpact(
        in_hand=min(len(open_rows), at_most),
        ahead=sum(state == AssignmentState.HELD for _, state, _ in open_rows),
        begun=sum(version > 0 for *_, version in open_rows),
        people=len({rater for rater, *_ in open_rows} | set(corrected)),
        correcting=len(corrected),
        waiting=sum(lane.n_open for lane in lanes),
        is_more=len(open_rows) > at_most or any(lane.is_more for lane in lanes),
    )


def change_overlap(
    *,
    project: Project,
    overlap: int,
    overlap_limit: int,
    lease_seconds: int,
    includes_settled: bool = False,
    by: User | None,
    now: dt.datetime,
) -> Job | None:
    """Change overlap and lease length. Return the job that resizes slots, or None if the overlap does not change.

    An open trace keeps its lease, and gets the new length with its rater's next edit. With `includes_settled`, traces
    that raters settled by fewer votes than the new overlap get additional labels, and are settled again.
    """
    is_new_overlap = (overlap, overlap_limit) != (project.overlap, project.overlap_limit)
    with transaction.atomic():
        new = {"overlap": overlap, "overlap_limit": overlap_limit, "lease_seconds": lease_seconds}
        lifecycle.change_settings(project=project, by=by, now=now, **new)
        if not is_new_overlap:
            return None
        arguments = {"project": project.pk, "includes_settled": includes_settled}
        return control.request_job(kind=KIND, subject=f"project:{project.pk}", arguments=arguments, by=by, now=now)


def chunks(job: Job) -> Iterator[JobProgress | Chunk]:
    """Yield the work of the job. It uses the current overlap, so the later of two changes wins."""
    project = Project.objects.get(pk=job.arguments["project"])
    after, includes_settled = job.checkpoint.get("after", 0), job.arguments.get("includes_settled", False)
    while (last := _last_of_next_chunk(project, after)) is not None:
        yield partial(_resize_chunk, project, after, includes_settled)
        after = last
    yield partial(_mark_traces_due, project, after)


def _mark_traces_due(project: Project, after: int, now: dt.datetime) -> JobProgress:
    """Mark contested and incomplete traces as due: the new overlap may settle them or request more labels."""
    settlements.mark_unsettled_due(project_id=project.pk, now=now)
    total = project.traces.count()
    return JobProgress(total, total, {"after": after})


def _last_of_next_chunk(project: Project, after: int) -> int | None:
    keys = project.traces.available().filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)[:_CHUNK]
    return max(keys, default=None)


def _resize_chunk(project: Project, after: int, includes_settled: bool, now: dt.datetime) -> JobProgress:
    overlap = Project.objects.values_list("overlap", flat=True).get(pk=project.pk)
    trace_ids = queue.resize_slots(
        project_id=project.pk,
        overlap=overlap,
        after=after,
        now=now,
        limit=_CHUNK,
        includes_settled=includes_settled,
    )
    if includes_settled:
        _settled_below(project.pk, overlap).filter(trace_id__in=trace_ids).update(is_due=True)
    settlements.mark_fully_labeled_due(trace_ids=trace_ids, overlap=overlap, now=now)
    last = max(trace_ids, default=after)
    return JobProgress(project.traces.filter(pk__lte=last).count(), project.traces.count(), {"after": last})
