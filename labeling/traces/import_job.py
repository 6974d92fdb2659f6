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
from events import audit_log
from formats import catalog, input_files
from formats.privacy import PrivacyMode
from formats.records import BadLine, TraceRecord
from jobs import control
from jobs.failures import JobFailed
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling.models import Project, Source
from labeling.models.gold import GoldUse
from labeling.quality.gold import arrange_hidden_gold
from labeling.quality.project_stats import mark_existing_stats_stale
from labeling.traces import bad_lines, object_store, scan, similar_problems, sources, undo, uploads
from labeling.traces.import_report import ImportReport
from labeling.traces.labelers import NAMED_KINDS, LabelsKind
from labeling.traces.load import LoadState, load_chunk

KIND = "labeling.bring_in"
CHUNK_ON_POSTGRESQL = 1000  # traces in a transaction
PROGRESS_EVERY = 2000  # records between two signs of life while a file is looked through


class FileHasBadLines(JobFailed):
    """A file that must be whole is not. Nothing of it came in."""

    def __init__(self, report: ImportReport) -> None:
        first = "; ".join(str(line) for line in report.bad_lines[:5])
        super().__init__(
            f"{report.bad} of {report.bad + report.records} records are bad, nothing was imported: {first}"
        )
        self.report = report


class FileChanged(JobFailed):
    """The file is not the one that was looked through."""


class LabelerNotNamed(JobFailed):
    """The ratings are said to be those of one rater or machine, and nobody says of which."""


class ImportOptions(msgspec.Struct, kw_only=True):
    """What whoever brings a file in says of it, and how it is to be read."""

    format: str = "auto"
    segmenter: str = ""  # for texts that are not in steps yet; empty: the one that fits
    labels: LabelsKind = "judgments"
    labels_by: str = ""
    gold_use: str = GoldUse.HIDDEN.value
    purpose: str = "rate"
    private: PrivacyMode = "count"
    licence: str = ""
    statement: str = ""
    is_lenient: bool = False

    def check(self) -> None:
        if self.labels in NAMED_KINDS and not self.labels_by.strip():
            raise LabelerNotNamed(f'ratings that are "{self.labels}" need the name of the one that rated')


class ImportRequest(msgspec.Struct):
    """What was asked for. A job carries it as its arguments."""

    project: int
    source: int  # 0 while the file lies elsewhere: what it is shows when it is here
    path: str
    choices: ImportOptions
    address: str = ""


def request_import(*, project: Project, path: Path, choices: ImportOptions, by: User | None, now: dt.datetime) -> Job:
    """Ask for a file to be brought in behind the scenes. It must lie where the workers can read it."""
    bringing = prepare_import(project=project, path=path, choices=choices, now=now)
    return control.request_job(
        kind=KIND, subject=f"project:{project.pk}", arguments=msgspec.to_builtins(bringing), by=by, now=now
    )


def request_import_from_store(
    *, project: Project, address: str, choices: ImportOptions, by: User | None, now: dt.datetime
) -> Job:
    """Ask for an object of a store to be fetched and brought in behind the scenes."""
    choices.check()
    arguments = msgspec.to_builtins(ImportRequest(project.pk, 0, "", choices, address))
    return control.request_job(kind=KIND, subject=f"project:{project.pk}", arguments=arguments, by=by, now=now)


def prepare_import(*, project: Project, path: Path, choices: ImportOptions, now: dt.datetime) -> ImportRequest:
    """Tell the format and note the source. Raises where the file cannot be read or is of no known format."""
    choices.check()
    format = scan.resolve_format(path, named=choices.format)
    source = sources.ensure_source(
        project=project,
        name=path.name,
        format=format,
        sha256=input_files.hash_file(path),
        licence=choices.licence,
        statement=choices.statement,
        purpose=choices.purpose,
        labels_are=choices.labels,
        labels_by=choices.labels_by,
        now=now,
    )
    return ImportRequest(project.pk, source.pk, str(path), msgspec.structs.replace(choices, format=format))


def chunks(job: Job) -> Iterator[JobProgress | Chunk]:
    """The job's work, from where it stands."""
    bringing = msgspec.convert(job.arguments, ImportRequest)
    try:
        if bringing.address:
            bringing = yield from _fetch_file(job, bringing)
        yield JobProgress(job.done, result={"source": bringing.source})
        yield from run_import(
            bringing,
            checkpoint=job.checkpoint,
            by=job.asked_by,
            report=job.result.get("report"),
            bad_lines_path=bad_lines.path_for_job(job.pk),
        )
    except (input_files.UnreadableFile, catalog.UnknownFormat) as error:
        raise JobFailed(str(error)) from error
    if uploads.is_upload(path := Path(bringing.path)):
        uploads.delete_upload(path)  # the last chunk is committed: nothing will be read again


def _fetch_file(job: Job, bringing: ImportRequest) -> Generator[JobProgress, None, ImportRequest]:
    path = yield from object_store.fetch_object(bringing.address)
    project = Project.objects.get(pk=bringing.project)
    return prepare_import(project=project, path=path, choices=bringing.choices, now=job.started_at or job.asked_at)


def run_import(
    bringing: ImportRequest,
    *,
    checkpoint: dict[str, Any],
    by: User | None,
    report: dict[str, Any] | None = None,
    bad_lines_path: Path | None = None,
) -> Iterator[JobProgress | Chunk]:
    """Signs of life while the file is looked through, then a function that writes for each few traces. `report` is that
    of the last chunk, where one was written."""
    source = Source.objects.get(pk=bringing.source)
    path = Path(bringing.path)
    watch = input_files.FileWatch(path, source.sha256)
    try:
        _check_file_unchanged(path, watch)
        so_far = msgspec.convert(report, ImportReport) if "done" in checkpoint else None
        if so_far is None:
            so_far = yield from _scan_file(bringing, bad_lines_path)
        yield from _load_records(bringing, _make_load_state(bringing, source, so_far, by), checkpoint, watch)
    except FileChanged:
        yield from _undo_partial_import(bringing, source, by)
        raise


def _check_file_unchanged(path: Path, watch: input_files.FileWatch) -> None:
    if watch.is_same():
        return
    if path.exists():
        raise FileChanged(_("The file has changed since its import was asked for: import it again."))
    raise FileChanged(_("The file is not there any more: import it again."))


def _load_records(
    bringing: ImportRequest, loading: LoadState, checkpoint: dict[str, Any], watch: input_files.FileWatch
) -> Iterator[JobProgress | Chunk]:
    total = checkpoint.get("total", loading.report.records + loading.report.bad)
    done = checkpoint.get("done", 0)
    records = scan.read_records(Path(bringing.path), bringing.choices)
    for number, record in enumerate(islice(records, done)):
        loading.skip(record)
        if number % PROGRESS_EVERY == 0:
            yield JobProgress(done, total)
    while part := _next_records(records, watch):
        done += len(part)
        yield partial(_write_chunk, loading, part, done, total)
    loading.report.near_duplicates = yield from similar_problems.find_similar_problems(
        loading.source, JobProgress(done, total)
    )
    yield partial(_finish_import, loading, done, loading.by)


def _next_records(
    records: Iterator[TraceRecord | BadLine], watch: input_files.FileWatch
) -> list[TraceRecord | BadLine]:
    """The next few records, of the very file that was looked through: not half of one file and half of another."""
    try:
        part = list(islice(records, CHUNK_ON_POSTGRESQL))
    except input_files.UnreadableFile:
        if watch.is_same():
            raise
        part = []
    if not watch.is_same():
        raise FileChanged(_("The file was changed while it was coming in: import it again as it is now."))
    return part


def _undo_partial_import(bringing: ImportRequest, source: Source, by: User | None) -> Iterator[Chunk]:
    """Strict is all or nothing: what came of the file as it was goes again. A file that was in as a whole before stays;
    so does, leniently, what is in, until somebody takes it back."""
    if not bringing.choices.is_lenient and source.reported_at is None and source.traces.exists():
        yield from undo.undo_source(source, by=by, checkpoint={})


def report_from_progress(progress: JobProgress) -> ImportReport:
    """The report at the last sign of progress."""
    return msgspec.convert((progress.result or {}).get("report", {}), ImportReport)


def _scan_file(bringing: ImportRequest, bad_lines_path: Path | None) -> Generator[JobProgress, None, ImportReport]:
    """The whole file before anything is written. A strict import ends here at its first bad lines, with all of them."""
    look, size = scan.ImportScan(), Path(bringing.path).stat().st_size
    with bad_lines.open_writer(bad_lines_path) as writer:
        for number, record in enumerate(scan.read_records(Path(bringing.path), bringing.choices, look=look)):
            if isinstance(record, BadLine):
                writer.write(record)
            if number % PROGRESS_EVERY == 0:
                yield JobProgress(0, result={"looked": number, "read": look.bytes_read(), "size": size})
    report = look.told()
    if report.bad and not bringing.choices.is_lenient:
        yield JobProgress(0, result={"report": msgspec.to_builtins(report)})
        raise FileHasBadLines(report)
    return report


def _make_load_state(bringing: ImportRequest, source: Source, report: ImportReport, by: User | None) -> LoadState:
    return LoadState(
        project=Project.objects.get(pk=bringing.project),
        source=source,
        labels=bringing.choices.labels,
        gold_use=GoldUse(bringing.choices.gold_use),
        by=by,
        report=report,
    )


def _write_chunk(
    loading: LoadState, part: list[TraceRecord | BadLine], done: int, total: int, now: dt.datetime
) -> JobProgress:
    load_chunk(loading=loading, records=part, now=now)
    return _make_progress(loading, done, total)


def _make_progress(loading: LoadState, done: int, total: int) -> JobProgress:
    report = msgspec.to_builtins(loading.report)
    return JobProgress(done, total, {"done": done, "total": total}, {"report": report})


def _finish_import(loading: LoadState, done: int, by: User | None, now: dt.datetime) -> JobProgress:
    report = loading.report
    if report.gold_made:
        arrange_hidden_gold(project_id=loading.project.pk, now=now)
    mark_existing_stats_stale(project_id=loading.project.pk, now=now)
    sources.save_report(source=loading.source, report=msgspec.to_builtins(report), now=now)
    audit_log.log_event(
        what="import.done",
        by=by,
        now=now,
        project=loading.project.pk,
        subject=f"source:{loading.source.pk}",
        detail={"records": report.records, "bad": report.bad, "submissions": report.submissions_added},
    )
    return _make_progress(loading, done, done)
