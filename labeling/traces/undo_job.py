"""The job that undoes an import. It never runs while the import itself is running."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

from django.db.models import Q

from accounts.models import User
from jobs import control
from jobs.failures import JobFailed
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling.models import Source
from labeling.traces import import_job, undo

KIND = "labeling.undo_import"


class ImportStillRunning(JobFailed):
    """The import of the file has not finished."""


def request_undo(*, source: Source, by: User | None, now: dt.datetime) -> Job:
    """Queue the undo of an import."""
    _refuse_while_importing(source)
    return control.request_job(
        kind=KIND, subject=f"project:{source.project_id}", arguments={"source": source.pk}, by=by, now=now
    )


def chunks(job: Job) -> Iterator[JobProgress | Chunk]:
    """Yield the remaining work of the job."""
    source = Source.objects.select_related("project").get(pk=job.arguments["source"])
    yield from run_undo(source, by=job.asked_by, checkpoint=job.checkpoint)


def run_undo(source: Source, *, by: User | None, checkpoint: dict[str, Any]) -> Iterator[JobProgress | Chunk]:
    _refuse_while_importing(source)
    yield from undo.undo_source(source, by=by, checkpoint=checkpoint)


def _refuse_while_importing(source: Source) -> None:
    is_of_source = Q(arguments__source=source.pk) | Q(result__source=source.pk)
    if Job.objects.unfinished().filter(is_of_source, kind=import_job.KIND).exists():
        raise ImportStillRunning("this import is still running: cancel it first")
