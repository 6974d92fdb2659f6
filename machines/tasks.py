"""The Celery tasks of this package."""

import datetime as dt

from celery import shared_task
from django.utils import timezone

from jobs import runner
from jobs.scheduler import register_work_check
from machines import licenses, machine_job, passports, routes, runs

PASSPORT_LEASE = dt.timedelta(minutes=5)  # all labels of a machine are compared in one chunk


@shared_task(name=runs.KIND)
def judge(job_id: int) -> None:
    runner.run_job(job_id, machine_job.run_machine_job, lease=machine_job.find_lease(job_id))


@shared_task(name="machines.resume_due")
def resume_due() -> None:
    runs.resume_due_runs(now=timezone.now())


_HAS_DUE_RUNS = "EXISTS (SELECT FROM machines_judgerun WHERE state = 'paused' AND resumes_at <= %(now)s)"
register_work_check("machines.resume_due", _HAS_DUE_RUNS)


@shared_task(name=passports.KIND)
def issue_passport(job_id: int) -> None:
    runner.run_job(job_id, passports.run_passport_job, lease=PASSPORT_LEASE)


@shared_task(name=routes.KIND)
def open_route(job_id: int) -> None:
    runner.run_job(job_id, routes.run_route_job, lease=PASSPORT_LEASE)


@shared_task(name=licenses.APPLY_TASK)
def check_passports() -> None:
    passports.check_passports(now=timezone.now())
    licenses.apply_licenses(now=timezone.now())


_HAS_DUE_PASSPORTS = f"""EXISTS (SELECT FROM machines_machinepassport WHERE expired_at IS NULL
  AND checked_at <= %(now)s::timestamptz - interval '{passports.CHECK_EVERY.total_seconds()} seconds')"""
register_work_check(licenses.APPLY_TASK, _HAS_DUE_PASSPORTS)
