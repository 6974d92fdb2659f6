"""The Celery tasks of labeling."""

from celery import shared_task
from django.utils import timezone

import rawsql
from jobs import runner, wakeups
from jobs.scheduler import LOOK_SECONDS, register_work_check
from labeling import overlap_change, queue
from labeling.projects import budgets
from labeling.quality import project_stats, rater_model, recount_job, resolve, set_aside, settlements
from labeling.traces import import_job, locations, undo

COMPUTE_EXPIRES_SECONDS = LOOK_SECONDS  # then the beat finds it again


def _register_job(kind: str, chunks: runner.Handler) -> None:
    @shared_task(name=kind)
    def run(job_id: int) -> None:
        runner.run_job(job_id, chunks)


for _job in (import_job, undo, recount_job, rater_model, overlap_change, set_aside):
    _register_job(_job.KIND, _job.chunks)


@shared_task(name="labeling.lapse_due")
def lapse_due_leases() -> None:
    queue.lapse_expired_leases(now=timezone.now())


register_work_check("labeling.lapse_due", queue.HAS_EXPIRED_LEASES)


@shared_task(name=settlements.REFRESH_TASK)
def refresh_quality() -> None:
    with wakeups.serving(settlements.REFRESH_TASK):
        resolve.resolve_due_traces(now=timezone.now())
        budgets.report_budgets(now=timezone.now())
    for project_id in project_stats.find_stale_projects(now=timezone.now()):
        compute_project_stats.apply_async([project_id], expires=COMPUTE_EXPIRES_SECONDS)
    if rawsql.fetch_rows(f"SELECT {_HAS_UNSETTLED}", {"now": timezone.now()})[0][0]:
        wakeups.request_task(settlements.REFRESH_TASK)


# A trace that failed is due again at its time.
_UNSETTLED = """EXISTS (SELECT FROM labeling_assignment WHERE due_at <= {due_before})
  OR EXISTS (SELECT FROM labeling_settlement WHERE is_due AND (retry_at IS NULL OR retry_at <= %(now)s))"""
_HAS_UNSETTLED = _UNSETTLED.format(due_before="%(now)s")
# The beat leaves a new submission to the task that it requested, which would otherwise find nothing to do.
_LEFT_TO_REQUEST = f"interval '{wakeups.BUSY_DELAY_SECONDS + 5} seconds'"
_HAS_OVERDUE = _UNSETTLED.format(due_before=f"%(now)s::timestamptz - {_LEFT_TO_REQUEST}")
_HAS_STALE = f"EXISTS (SELECT FROM labeling_projectstats WHERE {project_stats.IS_DUE})"
register_work_check(settlements.REFRESH_TASK, f"{_HAS_OVERDUE} OR {_HAS_STALE} OR {budgets.HAS_UNREPORTED}")


@shared_task(name="labeling.compute_figures")
def compute_project_stats(project_id: int) -> None:
    project_stats.refresh_project_stats(project_id=project_id, now=timezone.now())


@shared_task(name="labeling.recount_all")
def enqueue_recounts() -> None:
    recount_job.enqueue_recounts(now=timezone.now())


@shared_task(name="labeling.forget_uploads")
def delete_old_uploads() -> None:
    locations.delete_old_uploads(now=timezone.now())
