"""`manage.py jobs`: the background work and how far it is; `--retry ID` and `--cancel ID` for the operator."""

import datetime as dt
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.translation import gettext as _

from jobs import control
from jobs.models import Job

SHOWN = 50


class Command(BaseCommand):
    help = "Lists background work, the unfinished first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--retry", type=int, metavar="ID", help="ask again for work that failed or was cancelled")
        parser.add_argument("--cancel", type=int, metavar="ID", help="end work after the chunk that it is at")

    def handle(self, *args: Any, retry: int | None, cancel: int | None, **options: Any) -> None:
        now = timezone.now()
        if retry is not None:
            try:
                control.retry_job(job=_job(retry), by=None, now=now)
            except control.JobNotRetryable as error:
                raise CommandError(_("Only work that failed or was cancelled can be asked for again.")) from error
        if cancel is not None:
            control.cancel_job(job=_job(cancel), by=None, now=now)
        unfinished = list(Job.objects.unfinished().order_by("pk"))
        ended = Job.objects.exclude(ended_at=None).order_by("-ended_at")[: max(SHOWN - len(unfinished), 0)]
        for job in [*unfinished, *ended]:
            self.stdout.write(_line(job, now))


def _job(pk: int) -> Job:
    job = Job.objects.filter(pk=pk).first()
    if job is None:
        raise CommandError(_("There is no job %(pk)d.") % {"pk": pk})
    return job


def _line(job: Job, now: dt.datetime) -> str:
    total = "?" if job.total is None else job.total
    remaining = job.remaining_seconds(now)
    left = "" if remaining is None else _("%(seconds)d s left") % {"seconds": remaining}
    words = [f"{job.pk:>6}", f"{job.state:<9}", job.kind, job.subject, f"{job.done}/{total}", left, job.failure]
    return " ".join(word for word in words if word)
