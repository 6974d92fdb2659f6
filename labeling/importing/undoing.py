"""Undoes an import that somebody wants to have back: a job of its own, never beside the import itself."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

from django.db.models import Q

from accounts.models import User
from jobs import work
from jobs.failures import Failed
from jobs.models import Job
from jobs.runner import Chunk, Progress
from labeling.importing import bringing, taking_back
from labeling.models import Source

KIND = "labeling.undo_import"


class StillComing(Failed):
    """The file is still being brought in."""


def ask(*, source: Source, by: User | None, now: dt.datetime) -> Job:
    """Ask for an import to be taken back behind the scenes."""
    _refuse_while_coming(source)
    return work.ask(kind=KIND, subject=f"project:{source.project_id}", arguments={"source": source.pk}, by=by, now=now)


def chunks(job: Job) -> Iterator[Progress | Chunk]:
    """The job's work, from where it stands."""
    source = Source.objects.select_related("project").get(pk=job.arguments["source"])
    yield from undo(source, by=job.asked_by, checkpoint=job.checkpoint)


def undo(source: Source, *, by: User | None, checkpoint: dict[str, Any]) -> Iterator[Progress | Chunk]:
    _refuse_while_coming(source)
    yield from taking_back.take_back(source, by=by, checkpoint=checkpoint)


def _refuse_while_coming(source: Source) -> None:
    its = Q(arguments__source=source.pk) | Q(result__source=source.pk)
    if Job.objects.unfinished().filter(its, kind=bringing.KIND).exists():
        raise StillComing("the file is still being brought in: cancel the import first")
