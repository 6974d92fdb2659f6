"""The Celery tasks of labeling."""

from celery import shared_task
from django.utils import timezone

from jobs import runner
from labeling import overlap_change, queue
from labeling.quality import background_refresh, rater_model, recount_job
from labeling.traces import import_job, undo_job, uploads

REFRESH_EXPIRES_SECONDS = 3.0  # the next refresh asks again


@shared_task(name=import_job.KIND)
def run_import(job_id: int) -> None:
    runner.run_job(job_id, import_job.chunks)


@shared_task(name=undo_job.KIND)
def run_undo_import(job_id: int) -> None:
    runner.run_job(job_id, undo_job.chunks)


@shared_task(name="labeling.lapse_due")
def lapse_due_leases() -> None:
    queue.lapse_expired_leases(now=timezone.now())


@shared_task(name="labeling.refresh")
def refresh_quality() -> None:
    background_refresh.resolve_due_traces(now=timezone.now())
    for project_id in background_refresh.list_stale_projects(now=timezone.now()):
        compute_project_stats.apply_async([project_id], expires=REFRESH_EXPIRES_SECONDS)


@shared_task(name="labeling.compute_figures")
def compute_project_stats(project_id: int) -> None:
    background_refresh.refresh_project_stats(project_id=project_id, now=timezone.now())


@shared_task(name="labeling.recount_all")
def enqueue_recounts() -> None:
    recount_job.enqueue_recounts(now=timezone.now())


@shared_task(name=recount_job.KIND)
def run_recount(job_id: int) -> None:
    runner.run_job(job_id, recount_job.chunks)


@shared_task(name=rater_model.KIND)
def run_rater_fit(job_id: int) -> None:
    runner.run_job(job_id, rater_model.chunks)


@shared_task(name="labeling.forget_uploads")
def delete_old_uploads() -> None:
    uploads.delete_old_uploads(now=timezone.now())


@shared_task(name=overlap_change.KIND)
def run_overlap_change(job_id: int) -> None:
    runner.run_job(job_id, overlap_change.chunks)
