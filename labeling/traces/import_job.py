"""Import one file, as a job or from the command line: fetch it if remote, scan it, then load it in small transactions.

A strict import stops at bad lines and writes nothing. A lenient import skips bad lines and lists them in its report.
"""

import datetime as dt
from collections.abc import Generator, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from django.conf import settings
from django.utils.translation import gettext as _

from accounts.models import User
from events import audit_log
from formats import catalog, input_files
from formats.records import BadLine, TraceRecord
from jobs import control
from jobs.failures import JobFailed, check_free_space
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling.models import Project, Source
from labeling.models.gold import GoldUse
from labeling.projects import lifecycle, rating_rules
from labeling.quality.gold import arrange_hidden_gold
from labeling.quality.project_stats import mark_existing_stats_stale, mark_stats_stale
from labeling.traces import file_process, load, locations, record_spool, scan, undo
from labeling.traces.file_process import ScanProgress
from labeling.traces.load import LoadState, load_chunk
from labeling.traces.record_spool import RecordSpool
from labeling.traces.scan import ImportOptions, ImportReport

KIND = undo.IMPORT_KIND
CHUNK_RECORDS = 1000  # records per transaction
CHUNK_IMAGE_BYTES = 64 * 1024**2  # of their images, which are in memory together
PROGRESS_EVERY = 2000  # records between two progress reports of a scan


class FileHasBadLines(JobFailed):
    """A strict import found bad lines. Nothing was imported."""

    def __init__(self, report: ImportReport) -> None:
        first = "; ".join(str(line) for line in report.bad_lines[:5])
        n_records = report.bad + report.records
        super().__init__(f"{report.bad} of {n_records} records are bad; nothing was imported: {first}")
        self.report = report


class FileChanged(JobFailed):
    """The file is not the one that was scanned."""


class ImportRequest(msgspec.Struct):
    """The arguments of an import job."""

    project: int
    source: int  # 0 until a file in an object store is fetched
    path: str
    choices: ImportOptions
    address: str = ""


def request_import(*, project: Project, path: Path, choices: ImportOptions, by: User | None, now: dt.datetime) -> Job:
    """Queue the import of a file that the workers can read."""
    choices.check()
    choices = msgspec.structs.replace(choices, format=file_process.detect_format(path, choices))
    return _request_job(prepare_import(project=project, path=path, choices=choices, now=now), by, now)


def request_import_from_store(
    *, project: Project, address: str, choices: ImportOptions, by: User | None, now: dt.datetime
) -> Job:
    """Queue the import of an object in an object store."""
    choices.check()
    return _request_job(ImportRequest(project.pk, 0, "", choices, address), by, now)


def _request_job(request: ImportRequest, by: User | None, now: dt.datetime) -> Job:
    arguments = msgspec.to_builtins(request)
    return control.request_job(kind=KIND, subject=f"project:{request.project}", arguments=arguments, by=by, now=now)


def prepare_import(*, project: Project, path: Path, choices: ImportOptions, now: dt.datetime) -> ImportRequest:
    """Detect the format and register the source. Raises if the file is unreadable or has no known format."""
    choices.check()
    format = scan.resolve_format(path, choices)
    source = load.ensure_source(
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
    """Yield the remaining work of the job."""
    request = msgspec.convert(job.arguments, ImportRequest)
    try:
        if request.address:
            request = yield from _fetch_file(job, request)
        yield JobProgress(job.done, result={"source": request.source})
        yield from run_import(
            request,
            checkpoint=job.checkpoint,
            by=job.asked_by,
            report=job.result.get("report"),
            bad_lines_path=scan.bad_lines_path(job.pk),
            is_isolated=True,
        )
    except (input_files.UnreadableFile, catalog.UnknownFormat) as error:
        raise JobFailed(str(error)) from error
    if locations.is_upload(path := Path(request.path)):
        locations.delete_upload(path)  # the last chunk is committed, so the file is not needed again


def _fetch_file(job: Job, request: ImportRequest) -> Generator[JobProgress, None, ImportRequest]:
    path = yield from locations.fetch_object(request.address)
    project = Project.objects.get(pk=request.project)
    choices = msgspec.structs.replace(request.choices, format=file_process.detect_format(path, request.choices))
    return prepare_import(project=project, path=path, choices=choices, now=job.started_at or job.asked_at)


def run_import(
    request: ImportRequest,
    *,
    checkpoint: dict[str, Any],
    by: User | None,
    report: dict[str, Any] | None = None,
    bad_lines_path: Path | None = None,
    is_isolated: bool = False,
    images: Path | None = None,
) -> Iterator[JobProgress | Chunk]:
    """Yield progress while the file is scanned, then a function that writes each chunk.

    `checkpoint` and `report` come from the last chunk that was written, if any. An isolated import reads the file in a
    process with limits, because other work depends on this process. `images` is as in `scan.read_records`.
    """
    source = Source.objects.get(pk=request.source)
    path = Path(request.path)
    watch = input_files.FileWatch(path, source.sha256)
    try:
        _check_file_unchanged(path, watch)
        with record_spool.open_spool(Path(settings.DATA_DIR)) as spool:
            if "done" in checkpoint:
                yield from _read_again(request, spool, checkpoint, watch, is_isolated=is_isolated, images=images)
                scanned = msgspec.convert(report, ImportReport)
            else:
                scanned = yield from _scan_file(request, spool, bad_lines_path, is_isolated=is_isolated, images=images)
            project, gold_use = Project.objects.get(pk=request.project), GoldUse(request.choices.gold_use)
            state = LoadState(
                project=project, source=source, labels=request.choices.labels, gold_use=gold_use, by=by, report=scanned
            )
            yield from _load_records(spool.read(), state, checkpoint, watch)
    except FileChanged:
        yield from _undo_partial_import(request, source, by)
        raise


def _check_file_unchanged(path: Path, watch: input_files.FileWatch) -> None:
    if watch.is_same():
        return
    if path.exists():
        raise FileChanged(_("The file has changed since its import was requested. Import it again."))
    raise FileChanged(_("The file no longer exists. Upload it and import it again."))


def _load_records(
    records: Iterator[TraceRecord | BadLine],
    state: LoadState,
    checkpoint: dict[str, Any],
    watch: input_files.FileWatch,
) -> Iterator[JobProgress | Chunk]:
    total = checkpoint.get("total", state.report.records + state.report.bad)
    done = checkpoint.get("done", 0)
    for number, record in enumerate(islice(records, done)):
        state.skip(record)
        if number % PROGRESS_EVERY == 0:
            yield JobProgress(done, total)
    while part := _next_records(records, watch):
        check_free_space()
        done += len(part)
        yield partial(_write_chunk, state, part, done, total)
    state.report.near_duplicates = yield from load.find_similar_problems(state.source, JobProgress(done, total))
    yield partial(_finish_import, state, done)


def _next_records(
    records: Iterator[TraceRecord | BadLine], watch: input_files.FileWatch
) -> list[TraceRecord | BadLine]:
    """Read the next records, and check that they belong to the file that was scanned."""
    try:
        part = _take_records(records)
    except input_files.UnreadableFile:
        if watch.is_same():
            raise
        part = []
    if not watch.is_same():
        raise FileChanged(_("The file changed during its import. Import it again."))
    return part


def _take_records(records: Iterator[TraceRecord | BadLine]) -> list[TraceRecord | BadLine]:
    part: list[TraceRecord | BadLine] = []
    n_bytes = 0
    with load.garbage_collection_paused():
        for record in islice(records, CHUNK_RECORDS):
            part.append(record)
            if isinstance(record, TraceRecord) and record.images:
                n_bytes += sum(len(image.data) for image in record.images)
            if n_bytes > CHUNK_IMAGE_BYTES:
                break
    return part


def _undo_partial_import(request: ImportRequest, source: Source, by: User | None) -> Iterator[Chunk]:
    """Undo a strict import that stopped half-way. An earlier complete import of the file stays."""
    if not request.choices.is_lenient and source.reported_at is None and source.traces.exists():
        yield from undo.undo_source(source, by=by, checkpoint={})


def report_from_progress(progress: JobProgress) -> ImportReport:
    return msgspec.convert((progress.result or {}).get("report", {}), ImportReport)


def _read_again(
    request: ImportRequest,
    spool: RecordSpool,
    checkpoint: dict[str, Any],
    watch: input_files.FileWatch,
    *,
    is_isolated: bool,
    images: Path | None,
) -> Iterator[JobProgress]:
    """Read the file of an import that was interrupted. Raises FileChanged if it is not the same any more."""
    try:
        for _progress in _spool_records(request, spool, is_isolated=is_isolated, images=images):
            check_free_space()
            yield JobProgress(checkpoint["done"], checkpoint.get("total"))
    except input_files.UnreadableFile:
        _check_file_unchanged(Path(request.path), watch)
        raise


def _spool_records(
    request: ImportRequest, spool: RecordSpool, *, is_isolated: bool, images: Path | None
) -> Iterator[ScanProgress]:
    """Read the file into the spool. The last progress has the report."""
    path = Path(request.path)
    if is_isolated:
        yield from file_process.scan_file(path, request.choices, spool)
        return
    file_scan, bad_lines, number = scan.ImportScan(), list[BadLine](), 0
    for number, record in enumerate(scan.read_records(path, request.choices, scan=file_scan, images=images)):
        spool.add(record)
        if isinstance(record, BadLine):
            bad_lines.append(record)
        if number % PROGRESS_EVERY == 0:
            yield ScanProgress(number, file_scan.bytes_read(), bad_lines)
            bad_lines = []
    yield ScanProgress(number, path.stat().st_size, bad_lines, file_scan.report)


def _scan_file(
    request: ImportRequest,
    spool: RecordSpool,
    bad_lines_path: Path | None,
    *,
    is_isolated: bool,
    images: Path | None,
) -> Generator[JobProgress, None, ImportReport]:
    """Read the whole file before anything is written. Raises `FileHasBadLines` if the import is strict."""
    size, report = Path(request.path).stat().st_size, ImportReport()
    with scan.open_bad_lines(bad_lines_path) as write_bad_line:
        for progress in _spool_records(request, spool, is_isolated=is_isolated, images=images):
            for bad_line in progress.bad_lines:
                write_bad_line(bad_line)
            check_free_space()
            yield JobProgress(0, result={"looked": progress.number, "read": progress.read, "size": size})
            report = progress.report or report
    if report.bad and not request.choices.is_lenient:
        yield JobProgress(0, result={"report": msgspec.to_builtins(report)})
        raise FileHasBadLines(report)
    return report


def _write_chunk(
    state: LoadState, part: list[TraceRecord | BadLine], done: int, total: int, now: dt.datetime
) -> JobProgress:
    _choose_rating_rules(state, now)
    load_chunk(state=state, records=part, now=now)
    return _make_progress(state, done, total)


def _choose_rating_rules(state: LoadState, now: dt.datetime) -> None:
    """Give a project without rating rules those for the kind of task that most traces of the file have."""
    project, found = state.project, state.report.tasks
    if project.rating_rules or not found:
        return
    rules = rating_rules.copy_template(max(found, key=lambda task: found[task]))
    lifecycle.set_first_rating_rules(project=project, rules=rules, by=state.by, now=now)


def _make_progress(state: LoadState, done: int, total: int) -> JobProgress:
    report = msgspec.to_builtins(state.report)
    return JobProgress(done, total, {"done": done, "total": total}, {"report": report})


def _finish_import(state: LoadState, done: int, now: dt.datetime) -> JobProgress:
    report = state.report
    if report.gold_made:
        arrange_hidden_gold(project_id=state.project.pk, now=now)
    mark_stats = mark_stats_stale if report.submissions_added else mark_existing_stats_stale
    mark_stats(project_id=state.project.pk, now=now)
    load.save_report(source=state.source, report=msgspec.to_builtins(report), now=now)
    audit_log.log_event(
        what="import.done",
        by=state.by,
        now=now,
        project=state.project.pk,
        subject=f"source:{state.source.pk}",
        detail={"records": report.records, "bad": report.bad, "submissions": report.submissions_added},
    )
    return _make_progress(state, done, done)
