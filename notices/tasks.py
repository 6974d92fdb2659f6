"""Celery tasks of notices."""

from celery import shared_task
from django.utils import timezone

from jobs import runner
from jobs.scheduler import register_work_check
from notices import outbox


@shared_task(name=outbox.KIND)
def send_notices(job_id: int) -> None:
    runner.run_job(job_id, outbox.chunks, lease=outbox.ATTEMPT_LIMIT)


@shared_task(name="notices.send_due")
def send_due_notices() -> None:
    outbox.send_due(now=timezone.now())


register_work_check("notices.send_due", outbox.HAS_DUE_NOTICES)


@shared_task(name="notices.delete_old")
def delete_old_notices() -> None:
    outbox.delete_old_notices(now=timezone.now())
