"""Nightly job per project: recount all stored counts and correct differences.

It also retires overexposed gold, marks unsettled traces as due, and requests a new fit of the rater model.
"""

import datetime as dt
from collections.abc import Iterator
from functools import partial

from events import audit_log
from jobs import control
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling.models import Project, ProjectStats, Settlement
from labeling.models.project import ProjectState
from labeling.projects import budgets
from labeling.quality import gold, gold_monitor, project_stats, rater_model, settlements, tallies, workdays

KIND = "labeling.recount"
CHUNK_SIZE = 20


def enqueue_recounts(*, now: dt.datetime) -> int:
    """Request a recount for each active project with submissions. Return how many were requested."""
    projects = Project.objects.exclude(state=ProjectState.ARCHIVED).filter(figures__isnull=False)
    n_requested = 0
    for project_id in projects.order_by("pk").values_list("pk", flat=True):
        subject = f"project:{project_id}"
        if not Job.objects.unfinished().filter(kind=KIND, subject=subject).exists():
            control.request_job(kind=KIND, subject=subject, arguments={"project": project_id}, by=None, now=now)
            n_requested += 1
    return n_requested


def chunks(job: Job) -> Iterator[Chunk]:
    """Recount every submitted trace of the project in order, continuing from the checkpoint."""
    project_id = job.arguments["project"]
    traces = Settlement.objects.filter(project_id=project_id).order_by("trace_id").values_list("trace_id", flat=True)
    total = traces.count()
    while chunk := list(traces.filter(trace_id__gt=job.checkpoint.get("trace", 0))[:CHUNK_SIZE]):
        yield partial(_recount_chunk, job, chunk, total)
    # Computed outside the transaction that ends the job: with a million traces it takes seconds.
    counts = settlements.compute_drift(project_id=project_id)
    yield partial(_finish_recount, project_id, job.done, job.checkpoint.get("drifted", 0), counts)


def _recount_chunk(job: Job, traces: list[int], total: int, now: dt.datetime) -> JobProgress:
    drifted = job.checkpoint.get("drifted", 0) + tallies.recount_tallies(trace_ids=traces, now=now)
    return JobProgress(job.done + len(traces), total, {"trace": traces[-1], "drifted": drifted})


def _finish_recount(
    project_id: int, done: int, drifted: int, counts: settlements.TotalsDrift, now: dt.datetime
) -> JobProgress:
    n_retired = gold.retire_overexposed_gold(project_id=project_id, now=now)
    gold.arrange_hidden_gold(project_id=project_id, now=now)
    n_trusted = gold_monitor.mark_trusted_raters(project_id=project_id, now=now)
    settlements.mark_unsettled_due(project_id=project_id, now=now)
    rater_model.enqueue_fit(project_id=project_id, now=now)
    drifted_days = workdays.update_workdays(project_id=project_id, now=now, from_first=True)
    budgets.recount_spending(project=Project.objects.get(pk=project_id), now=now)
    drifted_counts = settlements.apply_drift(project_id=project_id, drift=counts)
    drifted_counts += project_stats.recount_traces(project_id=project_id)
    _record_drift(project_id, drifted, drifted_counts, now)
    if drifted or drifted_days or drifted_counts:
        project_stats.mark_stats_stale(project_id=project_id, now=now)
    result = {"traces": done, "drifted": drifted, "counts_drifted": drifted_counts, "gold_retired": n_retired}
    return JobProgress(done, result={**result, "proven": n_trusted, "work_days": drifted_days})


def _record_drift(project_id: int, traces: int, counts: int, now: dt.datetime) -> None:
    """Store the number of corrections for the statistics page, and log them."""
    ProjectStats.objects.filter(pk=project_id).update(recounted_at=now, drifted_traces=traces, drifted_counts=counts)
    if traces or counts:
        subject, detail = f"project:{project_id}", {"traces": traces, "counts": counts}
        audit_log.log_event(
            what="figures.drifted", by=None, now=now, project=project_id, subject=subject, detail=detail
        )
