"""A job that counts and logs an event for each number. It can be slow enough to be killed in the middle."""

import datetime as dt
import time
from collections.abc import Iterator
from functools import partial

from celery import shared_task

from events import audit_log
from jobs import runner
from jobs.models import Job
from jobs.runner import Chunk, JobProgress


@shared_task(name="tests.count")
def count_slowly(job_id: int) -> None:
    runner.run_job(job_id, chunks, lease=dt.timedelta(seconds=3))


def chunks(job: Job) -> Iterator[Chunk]:
    for number in range(job.checkpoint.get("at", 0) + 1, job.arguments["to"] + 1):
        time.sleep(job.arguments.get("seconds", 0))
        yield partial(write_event, number, job.arguments["to"])


def write_event(number: int, total: int, now: dt.datetime) -> JobProgress:
    audit_log.log_event(what=f"chunk {number}", by=None, now=now)
    return JobProgress(number, total, {"at": number})
