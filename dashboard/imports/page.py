"""What the pages of imports show. Reads alone: rows, and the beginning of a file that is to come in."""

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
from labeling.traces import bad_lines, import_job, import_report, locations, object_store, scan, undo_job
from labeling.traces.import_job import ImportOptions
from labeling.traces.import_report import ImportReport
from labeling.traces.locations import FileLocation
from labeling.traces.scan import ImportPreview

_PREVIEW_BYTES = 4 * 1024 * 1024  # bytes of an object that is not fetched yet
_MAX_STEPS = 12
_MAX_BAD_LINES = 20
_TABLE_SUFFIXES = (".csv", ".parquet")


@dataclass(frozen=True)
class PreviewStep:
    number: int | None  # as raters will see it: context has none
    text: str
    n_options: int
    is_rateable: bool
    rating: int | None
    is_rated: bool


@dataclass(frozen=True)
class PreviewRecord:
    """One record of a preview."""

    record: TraceRecord
    rungs: list[PreviewStep]
    more_steps: int

    @property
    def segmenter(self) -> str:
        return self.record.provenance.segmenter if self.record.provenance else ""


def load_import_preview(place: FileLocation, choices: ImportOptions) -> ImportPreview:
    """The beginning of the file. Raises where it cannot be read or is of no known format."""
    if place.path is not None:
        return _preview_path(place.path, choices, is_cut=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / place.name
        head, is_all = object_store.read_beginning(place.address, size=_PREVIEW_BYTES)
        if not is_all and input_files.unpacked_name(path).endswith(_TABLE_SUFFIXES):
            raise input_files.UnreadableFile(
                f"{place.name}: a table of this size can only be looked at once it is here"
            )
        packed = path.suffix in {".gz", ".zst"}
        path.write_bytes(head if is_all or packed else head[: head.rfind(b"\n") + 1] or head)
        return _preview_path(path, choices, is_cut=not is_all)


def guess_format(place: FileLocation) -> str:
    """What the file looks like; the simplest form where nothing can be told, so that the person can choose."""
    try:
        return load_import_preview(place, ImportOptions()).format
    except (input_files.UnreadableFile, catalog.UnknownFormat):
        return "native"


def _preview_path(path: Path, choices: ImportOptions, *, is_cut: bool) -> ImportPreview:
    format = scan.resolve_format(path, named=choices.format)
    return scan.preview_file(path, msgspec.structs.replace(choices, format=format), is_cut=is_cut)


def build_preview_records(found: ImportPreview) -> Iterator[PreviewRecord]:
    for record in found.first:
        rated = _collect_ratings(record)
        steps = record.steps or [StepRecord([]) for _ in rated]
        rungs = [_build_preview_step(place, steps, record, rated) for place in range(min(len(steps), _MAX_STEPS))]
        yield PreviewRecord(record, rungs, len(steps) - len(rungs))


def _collect_ratings(record: TraceRecord) -> dict[int, int | None]:
    turns = record.submissions[0].turns if record.submissions else []
    return {turn.position: turn.path_rating() for turn in turns}


def _build_preview_step(
    place: int, steps: Sequence[StepRecord], record: TraceRecord, rated: dict[int, int | None]
) -> PreviewStep:
    """A step of a trace; a live one has those that its rater was shown."""
    step = steps[place]
    number = sum(each.is_rateable for each in steps[: place + 1]) if step.is_rateable else None
    texts = [option.text for option in step.options]
    if not texts:
        turn = next(turn for turn in record.submissions[0].turns if turn.position == place)
        texts = [judgment.text for judgment in turn.shown or ()]
    first = texts[0] if texts else ""
    return PreviewStep(number, first, len(texts), step.is_rateable, rated.get(place), place in rated)


@dataclass(frozen=True)
class ImportStatus:
    """How one import stands: its job, its file, what it says of itself."""

    source: Source | None
    job: Job | None
    undoing: Job | None
    undone: dict[str, int]  # what the last taking back came to, where it was asked for on a page
    tables: list[import_report.ReportTable]
    bad: list[BadLine]
    n_bad: int
    report: ImportReport | None
    has_bad_lines: bool
    came_in: bool
    seconds: dt.timedelta | None

    @property
    def is_at_work(self) -> bool:
        return any(job is not None and job.state in _ACTIVE_STATES for job in (self.job, self.undoing))

    @property
    def may_be_undone(self) -> bool:
        return self.source is not None and self.came_in and self.source.undone_at is None and not self.is_at_work


_ACTIVE_STATES = (JobState.QUEUED, JobState.RUNNING)


def load_job_status(job: Job, now: dt.datetime) -> ImportStatus:
    pk = job.result.get("source") or job.arguments.get("source")
    source = Source.objects.filter(pk=pk, project=job.arguments["project"]).first() if pk else None
    return _build_status(source, job, now)


def load_source_status(source: Source, now: dt.datetime) -> ImportStatus:
    its = Q(arguments__source=source.pk) | Q(result__source=source.pk)
    job = _select_jobs(source.project, import_job.KIND).filter(its).order_by("-pk").first()
    return _build_status(source, job, now)


def _build_status(source: Source | None, job: Job | None, now: dt.datetime) -> ImportStatus:
    undo = (
        source
        and _select_jobs(source.project, undo_job.KIND).filter(arguments__source=source.pk).order_by("-pk").first()
    )
    told = (job.result.get("report") if job else None) or (source.report if source else None)
    report = msgspec.convert(told, ImportReport) if told else None
    left = job.remaining_seconds(now) if job else None
    came_in = source is not None and (source.reported_at is not None or source.traces.exists())
    return ImportStatus(
        source=source,
        job=job,
        undoing=undo if undo and (undo.state in _ACTIVE_STATES or undo.state == JobState.FAILED) else None,
        undone=undo.result.get("undone", {}) if undo else {},
        tables=import_report.make_report_tables(report, came_in=came_in) if report else [],
        bad=report.bad_lines[:_MAX_BAD_LINES] if report else [],
        n_bad=report.bad if report else 0,
        report=report,
        came_in=came_in,
        has_bad_lines=job is not None and bad_lines.path_for_job(job.pk).exists(),
        seconds=None if left is None else dt.timedelta(seconds=left),
    )


def select_imported_sources(project: Project) -> QuerySet[Source]:
    """The files of which something is here, or was."""
    traces = Trace.objects.filter(source=OuterRef("pk"))
    return Source.objects.filter(Q(reported_at__isnull=False) | Exists(traces), project=project)


def list_unfinished_imports(project: Project) -> list[Job]:
    """Imports that are under way, or that ended otherwise than they should: the newest."""
    return list(_select_jobs(project, import_job.KIND).exclude(state=JobState.DONE).order_by("-pk")[:20])


def get_file_name(job: Job) -> str:
    """What the file of a job is called."""
    return str(job.arguments.get("address") or Path(str(job.arguments.get("path", ""))).name)


def _select_jobs(project: Project, kind: str) -> JobQuerySet:
    return Job.objects.filter(kind=kind, subject=f"project:{project.pk}")


def has_object_stores() -> bool:
    return bool(locations.list_allowed_addresses())
