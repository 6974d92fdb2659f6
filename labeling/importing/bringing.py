"""Brings one file in, as a job or from the command line: looks through it first, then loads it in small transactions.

Strict: one bad line, and nothing comes in. Lenient: bad lines are left out, and the report says which.
"""

import datetime as dt
from collections.abc import Generator, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, cast

import msgspec
from django.db import connection

from accounts.models import User
from events import log
from jobs import work
from jobs.models import Job
from jobs.runner import Chunk, Progress
from labeling.importing import files, sources
from labeling.importing.load import Labels, Loading, load_chunk
from labeling.importing.readers import formats, tables
from labeling.importing.records import BadLine, TraceRecord
from labeling.importing.report import Report
from labeling.models import Project, Source

KIND = "labeling.bring_in"
LOOKED_AT = 2000  # records between two signs of life while a file is looked through


class HasBadLines(Exception):
    """A file that must be whole is not. Nothing of it came in."""

    def __init__(self, report: Report) -> None:
        first = "; ".join(str(line) for line in report.bad_lines[:5])
        super().__init__(
            f"{report.bad} of {report.bad + report.records} records are bad, nothing was imported: {first}"
        )
        self.report = report


class Bringing(msgspec.Struct):
    """What was asked for. A job carries it as its arguments."""

    project: int
    source: int
    path: str
    format: str
    labels: str = "judgments"
    is_lenient: bool = False


def ask(
    *, project: Project, path: Path, format: str, labels: Labels, is_lenient: bool, by: User | None, now: dt.datetime
) -> Job:
    """Ask for a file to be brought in behind the scenes. It must lie where the workers can read it."""
    bringing = prepare(project=project, path=path, format=format, labels=labels, is_lenient=is_lenient, now=now)
    return work.ask(kind=KIND, subject=f"project:{project.pk}", arguments=msgspec.to_builtins(bringing), by=by, now=now)


def prepare(
    *, project: Project, path: Path, format: str, labels: Labels, is_lenient: bool, now: dt.datetime
) -> Bringing:
    """Tell the format and note the source. Raises where the file cannot be read or is of no known format."""
    if format == "auto":
        with files.open_file(path) as stream:
            table = tables.kind_of(files.inner_name(path))
            found = formats.detect_table(stream, table) if table else formats.detect(stream.read(formats.HEAD))
            format = found.name
    formats.named(format)
    source = sources.ensure(project=project, name=path.name, format=format, sha256=files.sha256(path), now=now)
    return Bringing(project.pk, source.pk, str(path), format, labels, is_lenient)


def chunks(job: Job) -> Iterator[Progress | Chunk]:
    """The job's work, from where it stands."""
    bringing = msgspec.convert(job.arguments, Bringing)
    yield from bring_in(bringing, checkpoint=job.checkpoint, by=job.asked_by)


def bring_in(bringing: Bringing, *, checkpoint: dict[str, Any], by: User | None) -> Iterator[Progress | Chunk]:
    """Signs of life while the file is looked through, then a function that writes for each few traces."""
    total = checkpoint.get("total")
    if total is None:
        looked = yield from _look_through(bringing)
        total = looked.records + looked.bad
        if looked.bad and not bringing.is_lenient:
            raise HasBadLines(looked)
    loading = _loading(bringing, checkpoint)
    records = _records(bringing)
    done = checkpoint.get("done", 0)
    for record in islice(records, done):
        loading.skip(record)
    while part := list(islice(records, _size())):
        done += len(part)
        yield partial(_write, loading, part, done, total)
    yield partial(_finish, loading, done, by)


def report_of(progress: Progress) -> Report:
    """The report at the last sign of progress."""
    return msgspec.convert((progress.result or {}).get("report", {}), Report)


def _look_through(bringing: Bringing) -> Generator[Progress, None, Report]:
    report = Report()
    for number, record in enumerate(_records(bringing)):
        if isinstance(record, BadLine):
            report.refuse(record)
        else:
            report.records += 1
        if number % LOOKED_AT == 0:
            yield Progress(0)
    return report


def _records(bringing: Bringing) -> Iterator[TraceRecord | BadLine]:
    with files.open_file(Path(bringing.path)) as stream:
        table = tables.kind_of(files.inner_name(Path(bringing.path)))
        yield from formats.read(stream, format=bringing.format, table=table)


def _loading(bringing: Bringing, checkpoint: dict[str, Any]) -> Loading:
    loading = Loading(
        project=Project.objects.get(pk=bringing.project),
        source=Source.objects.get(pk=bringing.source),
        labels=cast(Labels, bringing.labels),
    )
    if "report" in checkpoint:
        loading.report = msgspec.convert(checkpoint["report"], Report)
    return loading


def _size() -> int:
    """On SQLite people wait for the end of each transaction."""
    return 20 if connection.vendor == "sqlite" else 500


def _write(loading: Loading, part: list[TraceRecord | BadLine], done: int, total: int, now: dt.datetime) -> Progress:
    load_chunk(loading=loading, records=part, now=now)
    return _progress(loading, done, total)


def _progress(loading: Loading, done: int, total: int) -> Progress:
    report = msgspec.to_builtins(loading.report)
    return Progress(done, total, {"done": done, "total": total, "report": report}, {"report": report})


def _finish(loading: Loading, done: int, by: User | None, now: dt.datetime) -> Progress:
    report = loading.report
    log.append(
        what="import.done",
        by=by,
        now=now,
        project=loading.project.pk,
        subject=f"source:{loading.source.pk}",
        detail={"records": report.records, "bad": report.bad, "submissions": report.submissions_added},
    )
    return _progress(loading, done, done)
