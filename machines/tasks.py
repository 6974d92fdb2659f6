"""The Celery tasks of this package."""

from celery import shared_task
from django.utils import timezone

from jobs import runner
from jobs.scheduler import register_work_check
from machines import machine_job, runs


@shared_task(name=runs.KIND)
def judge(job_id: int) -> None:
    runner.run_job(job_id, machine_job.run_machine_job, lease=machine_job.find_lease(job_id))


@shared_task(name="machines.resume_due")
def resume_due() -> None:
    runs.resume_due_runs(now=timezone.now())


_HAS_DUE_RUNS = "EXISTS (SELECT FROM machines_judgerun WHERE state = 'paused' AND resumes_at <= %(now)s)"
register_work_check("machines.resume_due", _HAS_DUE_RUNS)
