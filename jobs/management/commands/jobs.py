"""`manage.py jobs`: list background jobs, and retry or cancel one."""

import datetime as dt
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.translation import gettext as _

from jobs import control
from jobs.models import Job

MAX_LISTED = 50


class Command(BaseCommand):
    help = "List background jobs, unfinished ones first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--retry", type=int, metavar="ID", help="retry a failed or canceled job")
        parser.add_argument("--cancel", type=int, metavar="ID", help="cancel a job when its current chunk is done")

    def handle(self, *args: Any, retry: int | None, cancel: int | None, **options: Any) -> None:
        now = timezone.now()
        if retry is not None:
            try:
                control.retry_job(job=_load_job(retry), by=None, now=now)
            except control.JobNotRetryable as error:
                raise CommandError(_("Only a failed or canceled job can be retried.")) from error
        if cancel is not None:
            control.cancel_job(job=_load_job(cancel), by=None, now=now)
        unfinished = list(Job.objects.unfinished().order_by("pk"))
        ended = Job.objects.exclude(ended_at=None).order_by("-ended_at")[: max(MAX_LISTED - len(unfinished), 0)]
        for job in [*unfinished, *ended]:
            self.stdout.write(_format_job(job, now))


def _load_job(pk: int) -> Job:
    job = Job.objects.filter(pk=pk).first()
    if job is None:
        raise CommandError(_("Job %(pk)d does not exist.") % {"pk": pk})
    return job


def _format_job(job: Job, now: dt.datetime) -> str:
    total = "?" if job.total is None else job.total
    remaining = job.remaining_seconds(now)
    left = "" if remaining is None else _("%(seconds)d s left") % {"seconds": remaining}
    parts = [f"{job.pk:>6}", f"{job.state:<9}", job.kind, job.subject, f"{job.done}/{total}", left, job.failure]
    return " ".join(part for part in parts if part)
