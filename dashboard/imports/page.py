"""Data of the import pages: the list, the progress of one import, and the preview of a file. Writes nothing."""

import datetime as dt
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from django.db.models import Exists, OuterRef, Q, QuerySet

from formats import catalog, input_files
from formats.records import BadLine, StepRecord, TraceRecord
from jobs.models import Job, JobQuerySet, JobState
from labeling.models import Project, Source, Trace
from labeling.traces import import_job, import_report, locations, object_store, scan, undo_job
from labeling.traces.import_job import ImportOptions
from labeling.traces.import_report import ImportReport
from labeling.traces.locations import FileLocation
from labeling.traces.scan import ImportPreview

_PREVIEW_BYTES = 4 * 1024 * 1024  # of an object that has not been fetched yet
_MAX_STEPS = 12
_MAX_BAD_LINES = 20
_TABLE_SUFFIXES = (".csv", ".parquet")


@dataclass(frozen=True)
class PreviewStep:
    number: int | None  # as raters will see it; context has none
    text: str
    n_options: int
    is_rateable: bool
    rating: int | None
    is_rated: bool


@dataclass(frozen=True)
class PreviewRecord:
    """One record of a preview."""

    record: TraceRecord
    steps: list[PreviewStep]
    n_more_steps: int

    @property
    def segmenter(self) -> str:
        return self.record.provenance.segmenter if self.record.provenance else ""


def load_import_preview(location: FileLocation, options: ImportOptions) -> ImportPreview:
    """Read the beginning of the file. Raises UnreadableFile or UnknownFormat."""
    if location.path is not None:
        return _preview_path(location.path, options, is_cut=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / location.name
        head, is_all = object_store.read_beginning(location.address, size=_PREVIEW_BYTES)
        if not is_all and input_files.unpacked_name(path).endswith(_TABLE_SUFFIXES):
            raise input_files.UnreadableFile(
                f"{location.name} is a large table in an object store, which cannot be previewed."
                " Import it without a preview, or upload a smaller file."
            )
        is_packed = path.suffix in {".gz", ".zst"}
        path.write_bytes(head if is_all or is_packed else head[: head.rfind(b"\n") + 1] or head)
        return _preview_path(path, options, is_cut=not is_all)


def guess_format(location: FileLocation) -> str:
    """Detect the format; fall back to the native one, so that the person can choose."""
    try:
        return load_import_preview(location, ImportOptions()).format
    except (input_files.UnreadableFile, catalog.UnknownFormat):
        return "native"


def _preview_path(path: Path, options: ImportOptions, *, is_cut: bool) -> ImportPreview:
    format = scan.resolve_format(path, named=options.format)
    return scan.preview_file(path, msgspec.structs.replace(options, format=format), is_cut=is_cut)


def build_preview_records(preview: ImportPreview) -> Iterator[PreviewRecord]:
    for record in preview.first:
        ratings = _collect_ratings(record)
        steps = record.steps or [StepRecord([]) for _ in ratings]
        shown = [_build_preview_step(position, steps, record, ratings) for position in range(len(steps[:_MAX_STEPS]))]
        yield PreviewRecord(record, shown, len(steps) - len(shown))


def _collect_ratings(record: TraceRecord) -> dict[int, int | None]:
    turns = record.submissions[0].turns if record.submissions else []
    return {turn.position: turn.path_rating() for turn in turns}


def _build_preview_step(
    position: int, steps: Sequence[StepRecord], record: TraceRecord, ratings: dict[int, int | None]
) -> PreviewStep:
    """Build one step. A live trace stores no steps: its submission lists the options that were shown."""
    step = steps[position]
    number = sum(each.is_rateable for each in steps[: position + 1]) if step.is_rateable else None
    texts = [option.text for option in step.options]
    if not texts:
        turn = next(turn for turn in record.submissions[0].turns if turn.position == position)
        texts = [judgment.text for judgment in turn.shown or ()]
    return PreviewStep(
        number=number,
        text=texts[0] if texts else "",
        n_options=len(texts),
        is_rateable=step.is_rateable,
        rating=ratings.get(position),
        is_rated=position in ratings,
    )


@dataclass(frozen=True)
class ImportStatus:
    """State of one import: its job, its source and its report."""

    source: Source | None
    job: Job | None
    undo_job: Job | None  # while it runs, or after it failed
    undo_result: dict[str, int]  # counts of the last undo, if it was requested on a page
    report: ImportReport | None
    tables: list[import_report.ReportTable]
    has_bad_lines_file: bool
    is_imported: bool
    time_left: dt.timedelta | None

    @property
    def bad_lines(self) -> list[BadLine]:
        return self.report.bad_lines[:_MAX_BAD_LINES] if self.report else []

    @property
    def is_under_way(self) -> bool:
        return any(job is not None and job.state in _ACTIVE_STATES for job in (self.job, self.undo_job))

    @property
    def may_be_undone(self) -> bool:
        return self.source is not None and self.is_imported and self.source.undone_at is None and not self.is_under_way


_ACTIVE_STATES = (JobState.QUEUED, JobState.RUNNING)


def load_job_status(job: Job, now: dt.datetime) -> ImportStatus:
    pk = job.result.get("source") or job.arguments.get("source")
    source = Source.objects.filter(pk=pk, project=job.arguments["project"]).first() if pk else None
    return _build_status(source, job, now)


def load_source_status(source: Source, now: dt.datetime) -> ImportStatus:
    is_of_source = Q(arguments__source=source.pk) | Q(result__source=source.pk)
    job = _select_jobs(source.project, import_job.KIND).filter(is_of_source).order_by("-pk").first()
    return _build_status(source, job, now)


def _build_status(source: Source | None, job: Job | None, now: dt.datetime) -> ImportStatus:
    undo = (
        _select_jobs(source.project, undo_job.KIND).filter(arguments__source=source.pk).order_by("-pk").first()
        if source
        else None
    )
    stored_report = (job.result.get("report") if job else None) or (source.report if source else None)
    report = msgspec.convert(stored_report, ImportReport) if stored_report else None
    seconds = job.remaining_seconds(now) if job else None
    is_imported = source is not None and (source.reported_at is not None or source.traces.exists())
    return ImportStatus(
        source=source,
        job=job,
        undo_job=undo if undo and undo.state in (*_ACTIVE_STATES, JobState.FAILED) else None,
        undo_result=undo.result.get("undone", {}) if undo else {},
        report=report,
        tables=import_report.make_report_tables(report, came_in=is_imported) if report else [],
        has_bad_lines_file=job is not None and import_report.path_for_job(job.pk).exists(),
        is_imported=is_imported,
        time_left=None if seconds is None else dt.timedelta(seconds=seconds),
    )


def select_imported_sources(project: Project) -> QuerySet[Source]:
    """Select the sources that have or had traces."""
    traces = Trace.objects.filter(source=OuterRef("pk"))
    return Source.objects.filter(Q(reported_at__isnull=False) | Exists(traces), project=project)


def list_unfinished_imports(project: Project) -> list[Job]:
    """List the newest imports that are running, failed or were cancelled."""
    return list(_select_jobs(project, import_job.KIND).exclude(state=JobState.DONE).order_by("-pk")[:20])


def get_file_name(job: Job) -> str:
    return str(job.arguments.get("address") or Path(str(job.arguments.get("path", ""))).name)


def _select_jobs(project: Project, kind: str) -> JobQuerySet:
    return Job.objects.filter(kind=kind, subject=f"project:{project.pk}")


def has_object_stores() -> bool:
    return bool(locations.list_allowed_addresses())
