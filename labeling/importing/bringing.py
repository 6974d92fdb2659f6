"""Brings one file in, as a job or from the command line: fetches it where it lies elsewhere, looks through it, and then
loads it in small transactions.

Strict: one bad line, and nothing comes in. Lenient: bad lines are left out, and the report says which.
"""

import datetime as dt
from collections.abc import Generator, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from django.utils.translation import gettext as _

from accounts.models import User
from events import log
from jobs import work
from jobs.failures import Failed
from jobs.models import Job
from jobs.runner import Chunk, Progress
from labeling import quality
from labeling.importing import bad_lines, fetching, files, likeness, looking, sources, taking_back, uploads
from labeling.importing.attributing import NAMED, Labels
from labeling.importing.load import Loading, load_chunk
from labeling.importing.privacy import Private
from labeling.importing.readers import formats
from labeling.importing.records import BadLine, TraceRecord
from labeling.importing.report import Report
from labeling.models import Project, Source
from labeling.models.quality import GoldUse

KIND = "labeling.bring_in"
AT_ONCE = 1000  # traces in a transaction
LOOKED_AT = 2000  # records between two signs of life while a file is looked through


class HasBadLines(Failed):
    """A file that must be whole is not. Nothing of it came in."""

    def __init__(self, report: Report) -> None:
        first = "; ".join(str(line) for line in report.bad_lines[:5])
        super().__init__(
            f"{report.bad} of {report.bad + report.records} records are bad, nothing was imported: {first}"
        )
        self.report = report


class Changed(Failed):
    """The file is not the one that was looked through."""


class Unnamed(Failed):
    """The ratings are said to be those of one rater or machine, and nobody says of which."""


class Choices(msgspec.Struct, kw_only=True):
    """What whoever brings a file in says of it, and how it is to be read."""

    format: str = "auto"
    segmenter: str = ""  # for texts that are not in steps yet; empty: the one that fits
    labels: Labels = "judgments"
    labels_by: str = ""
    gold_use: str = GoldUse.HIDDEN.value
    purpose: str = "rate"
    private: Private = "count"
    licence: str = ""
    statement: str = ""
    is_lenient: bool = False

    def check(self) -> None:
        if self.labels in NAMED and not self.labels_by.strip():
            raise Unnamed(f'ratings that are "{self.labels}" need the name of the one that rated')


class Bringing(msgspec.Struct):
    """What was asked for. A job carries it as its arguments."""

    project: int
    source: int  # 0 while the file lies elsewhere: what it is shows when it is here
    path: str
    choices: Choices
    address: str = ""


def ask(*, project: Project, path: Path, choices: Choices, by: User | None, now: dt.datetime) -> Job:
    """Ask for a file to be brought in behind the scenes. It must lie where the workers can read it."""
    bringing = prepare(project=project, path=path, choices=choices, now=now)
    return work.ask(kind=KIND, subject=f"project:{project.pk}", arguments=msgspec.to_builtins(bringing), by=by, now=now)


def ask_for(*, project: Project, address: str, choices: Choices, by: User | None, now: dt.datetime) -> Job:
    """Ask for an object of a store to be fetched and brought in behind the scenes."""
    choices.check()
    arguments = msgspec.to_builtins(Bringing(project.pk, 0, "", choices, address))
    return work.ask(kind=KIND, subject=f"project:{project.pk}", arguments=arguments, by=by, now=now)


def prepare(*, project: Project, path: Path, choices: Choices, now: dt.datetime) -> Bringing:
    """Tell the format and note the source. Raises where the file cannot be read or is of no known format."""
    choices.check()
    format = looking.format_of(path, named=choices.format)
    source = sources.ensure(
        project=project,
        name=path.name,
        format=format,
        sha256=files.sha256(path),
        licence=choices.licence,
        statement=choices.statement,
        purpose=choices.purpose,
        labels_are=choices.labels,
        labels_by=choices.labels_by,
        now=now,
    )
    return Bringing(project.pk, source.pk, str(path), msgspec.structs.replace(choices, format=format))


def chunks(job: Job) -> Iterator[Progress | Chunk]:
    """The job's work, from where it stands."""
    bringing = msgspec.convert(job.arguments, Bringing)
    try:
        if bringing.address:
            bringing = yield from _fetched(job, bringing)
        yield Progress(job.done, result={"source": bringing.source})
        yield from bring_in(
            bringing,
            checkpoint=job.checkpoint,
            by=job.asked_by,
            report=job.result.get("report"),
            bad_lines_to=bad_lines.of_job(job.pk),
        )
    except (files.Unreadable, formats.UnknownFormat) as error:
        raise Failed(str(error)) from error
    if uploads.holds(path := Path(bringing.path)):
        uploads.forget(path)  # the last chunk is committed: nothing will be read again


def _fetched(job: Job, bringing: Bringing) -> Generator[Progress, None, Bringing]:
    path = yield from fetching.fetch(bringing.address)
    project = Project.objects.get(pk=bringing.project)
    return prepare(project=project, path=path, choices=bringing.choices, now=job.started_at or job.asked_at)


def bring_in(
    bringing: Bringing,
    *,
    checkpoint: dict[str, Any],
    by: User | None,
    report: dict[str, Any] | None = None,
    bad_lines_to: Path | None = None,
) -> Iterator[Progress | Chunk]:
    """Signs of life while the file is looked through, then a function that writes for each few traces. `report` is that
    of the last chunk, where one was written."""
    source = Source.objects.get(pk=bringing.source)
    path = Path(bringing.path)
    watch = files.Watch(path, source.sha256)
    try:
        _refuse_another(path, watch)
        so_far = msgspec.convert(report, Report) if "done" in checkpoint else None
        if so_far is None:
            so_far = yield from _look_through(bringing, bad_lines_to)
        yield from _load(bringing, _loading(bringing, source, so_far, by), checkpoint, watch)
    except Changed:
        yield from _taken_back(bringing, source, by)
        raise


def _refuse_another(path: Path, watch: files.Watch) -> None:
    if watch.is_same():
        return
    if path.exists():
        raise Changed(_("The file has changed since its import was asked for: import it again."))
    raise Changed(_("The file is not there any more: import it again."))


def _load(
    bringing: Bringing, loading: Loading, checkpoint: dict[str, Any], watch: files.Watch
) -> Iterator[Progress | Chunk]:
    total = checkpoint.get("total", loading.report.records + loading.report.bad)
    done = checkpoint.get("done", 0)
    records = looking.records(Path(bringing.path), bringing.choices)
    for number, record in enumerate(islice(records, done)):
        loading.skip(record)
        if number % LOOKED_AT == 0:
            yield Progress(done, total)
    while part := _next(records, watch):
        done += len(part)
        yield partial(_write, loading, part, done, total)
    loading.report.near_duplicates = yield from likeness.look(loading.source, Progress(done, total))
    yield partial(_finish, loading, done, loading.by)


def _next(records: Iterator[TraceRecord | BadLine], watch: files.Watch) -> list[TraceRecord | BadLine]:
    """The next few records, of the very file that was looked through: not half of one file and half of another."""
    try:
        part = list(islice(records, AT_ONCE))
    except files.Unreadable:
        if watch.is_same():
            raise
        part = []
    if not watch.is_same():
        raise Changed(_("The file was changed while it was coming in: import it again as it is now."))
    return part


def _taken_back(bringing: Bringing, source: Source, by: User | None) -> Iterator[Chunk]:
    """Strict is all or nothing: what came of the file as it was goes again. A file that was in as a whole before stays;
    so does, leniently, what is in, until somebody takes it back."""
    if not bringing.choices.is_lenient and source.reported_at is None and source.traces.exists():
        yield from taking_back.take_back(source, by=by, checkpoint={})


def report_of(progress: Progress) -> Report:
    """The report at the last sign of progress."""
    return msgspec.convert((progress.result or {}).get("report", {}), Report)


def _look_through(bringing: Bringing, bad_lines_to: Path | None) -> Generator[Progress, None, Report]:
    """The whole file before anything is written. A strict import ends here at its first bad lines, with all of them."""
    look, size = looking.Look(), Path(bringing.path).stat().st_size
    with bad_lines.writing(bad_lines_to) as writer:
        for number, record in enumerate(looking.records(Path(bringing.path), bringing.choices, look=look)):
            if isinstance(record, BadLine):
                writer.write(record)
            if number % LOOKED_AT == 0:
                yield Progress(0, result={"looked": number, "read": look.how_far(), "size": size})
    report = look.told()
    if report.bad and not bringing.choices.is_lenient:
        yield Progress(0, result={"report": msgspec.to_builtins(report)})
        raise HasBadLines(report)
    return report


def _loading(bringing: Bringing, source: Source, report: Report, by: User | None) -> Loading:
    return Loading(
        project=Project.objects.get(pk=bringing.project),
        source=source,
        labels=bringing.choices.labels,
        gold_use=GoldUse(bringing.choices.gold_use),
        by=by,
        report=report,
    )


def _write(loading: Loading, part: list[TraceRecord | BadLine], done: int, total: int, now: dt.datetime) -> Progress:
    load_chunk(loading=loading, records=part, now=now)
    return _progress(loading, done, total)


def _progress(loading: Loading, done: int, total: int) -> Progress:
    report = msgspec.to_builtins(loading.report)
    return Progress(done, total, {"done": done, "total": total}, {"report": report})


def _finish(loading: Loading, done: int, by: User | None, now: dt.datetime) -> Progress:
    report = loading.report
    if report.gold_made:
        quality.arrange_hidden(project_id=loading.project.pk, now=now)
    quality.count_figures_again(project_id=loading.project.pk, now=now)
    sources.keep_report(source=loading.source, report=msgspec.to_builtins(report), now=now)
    log.append(
        what="import.done",
        by=by,
        now=now,
        project=loading.project.pk,
        subject=f"source:{loading.source.pk}",
        detail={"records": report.records, "bad": report.bad, "submissions": report.submissions_added},
    )
    return _progress(loading, done, done)
