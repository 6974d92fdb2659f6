"""The Celery tasks of this room."""

from celery import shared_task
from django.utils import timezone

from jobs import runner
from labeling import overlapping, queue
from labeling.importing import bringing, undoing, uploads
from labeling.quality import fits, recounting, refreshing

UNTIL_THE_NEXT = 3.0  # seconds; whoever refreshes then asks again


@shared_task(name=bringing.KIND)
def bring_in(job_id: int) -> None:
    runner.run(job_id, bringing.chunks)


@shared_task(name=undoing.KIND)
def undo_import(job_id: int) -> None:
    runner.run(job_id, undoing.chunks)


@shared_task(name="labeling.lapse_due")
def lapse_due() -> None:
    queue.lapse_due(now=timezone.now())


@shared_task(name="labeling.refresh")
def refresh() -> None:
    refreshing.settle_due(now=timezone.now())
    for project_id in refreshing.stale(now=timezone.now()):
        compute_figures.apply_async([project_id], expires=UNTIL_THE_NEXT)


@shared_task(name="labeling.compute_figures")
def compute_figures(project_id: int) -> None:
    refreshing.compute(project_id=project_id, now=timezone.now())


@shared_task(name="labeling.recount_all")
def recount_all() -> None:
    recounting.ask_for_all(now=timezone.now())


@shared_task(name=recounting.KIND)
def recount(job_id: int) -> None:
    runner.run(job_id, recounting.chunks)


@shared_task(name=fits.KIND)
def fit(job_id: int) -> None:
    runner.run(job_id, fits.chunks)


@shared_task(name="labeling.forget_uploads")
def forget_uploads() -> None:
    uploads.forget_old(now=timezone.now())


@shared_task(name=overlapping.KIND)
def change_overlap(job_id: int) -> None:
    runner.run(job_id, overlapping.chunks)
