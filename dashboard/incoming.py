"""What the pages of imports show. Reads alone: rows, and the beginning of a file that is to come in."""

import datetime as dt
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from django.db.models import Exists, OuterRef, Q, QuerySet

from jobs.models import Job, JobQuerySet, JobState
from labeling.importing import bad_lines, bringing, fetching, files, looking, lying, telling, undoing
from labeling.importing.bringing import Choices
from labeling.importing.looking import Preview
from labeling.importing.lying import Place
from labeling.importing.readers import formats
from labeling.importing.records import BadLine, StepRecord, TraceRecord
from labeling.importing.report import Report
from labeling.models import Project, Source, Trace

_LOOKED_AT = 4 * 1024 * 1024  # bytes of an object that is not fetched yet
_SHOWN_STEPS = 12
_SHOWN_BAD = 20
_TABLES = (".csv", ".parquet")


@dataclass(frozen=True)
class Rung:
    number: int | None  # as raters will see it: context has none
    text: str
    n_options: int
    is_rateable: bool
    rating: int | None
    is_rated: bool


@dataclass(frozen=True)
class Shown:
    """One record of a preview."""

    record: TraceRecord
    rungs: list[Rung]
    more_steps: int

    @property
    def segmenter(self) -> str:
        return self.record.provenance.segmenter if self.record.provenance else ""


def preview(place: Place, choices: Choices) -> Preview:
    """The beginning of the file. Raises where it cannot be read or is of no known format."""
    if place.path is not None:
        return _preview(place.path, choices, is_cut=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / place.name
        head, is_all = fetching.beginning(place.address, size=_LOOKED_AT)
        if not is_all and files.inner_name(path).endswith(_TABLES):
            raise files.Unreadable(f"{place.name}: a table of this size can only be looked at once it is here")
        packed = path.suffix in {".gz", ".zst"}
        path.write_bytes(head if is_all or packed else head[: head.rfind(b"\n") + 1] or head)
        return _preview(path, choices, is_cut=not is_all)


def format_of(place: Place) -> str:
    """What the file looks like; the simplest form where nothing can be told, so that the person can choose."""
    try:
        return preview(place, Choices()).format
    except (files.Unreadable, formats.UnknownFormat):
        return "native"


def _preview(path: Path, choices: Choices, *, is_cut: bool) -> Preview:
    format = looking.format_of(path, named=choices.format)
    return looking.preview(path, msgspec.structs.replace(choices, format=format), is_cut=is_cut)


def shown(found: Preview) -> Iterator[Shown]:
    for record in found.first:
        rated = _ratings(record)
        steps = record.steps or [StepRecord([]) for _ in rated]
        rungs = [_rung(place, steps, record, rated) for place in range(min(len(steps), _SHOWN_STEPS))]
        yield Shown(record, rungs, len(steps) - len(rungs))


def _ratings(record: TraceRecord) -> dict[int, int | None]:
    turns = record.submissions[0].turns if record.submissions else []
    return {turn.position: turn.path_rating() for turn in turns}


def _rung(place: int, steps: Sequence[StepRecord], record: TraceRecord, rated: dict[int, int | None]) -> Rung:
    """A step of a trace; a live one has those that its rater was shown."""
    step = steps[place]
    number = sum(each.is_rateable for each in steps[: place + 1]) if step.is_rateable else None
    texts = [option.text for option in step.options]
    if not texts:
        turn = next(turn for turn in record.submissions[0].turns if turn.position == place)
        texts = [judgment.text for judgment in turn.shown or ()]
    first = texts[0] if texts else ""
    return Rung(number, first, len(texts), step.is_rateable, rated.get(place), place in rated)


@dataclass(frozen=True)
class Standing:
    """How one import stands: its job, its file, what it says of itself."""

    source: Source | None
    job: Job | None
    undoing: Job | None
    undone: dict[str, int]  # what the last taking back came to, where it was asked for on a page
    tables: list[telling.Table]
    bad: list[BadLine]
    n_bad: int
    report: Report | None
    has_bad_lines: bool
    came_in: bool
    seconds: dt.timedelta | None

    @property
    def is_at_work(self) -> bool:
        return any(job is not None and job.state in _AT_WORK for job in (self.job, self.undoing))

    @property
    def may_be_undone(self) -> bool:
        return self.source is not None and self.came_in and self.source.undone_at is None and not self.is_at_work


_AT_WORK = (JobState.QUEUED, JobState.RUNNING)


def of_job(job: Job, now: dt.datetime) -> Standing:
    pk = job.result.get("source") or job.arguments.get("source")
    source = Source.objects.filter(pk=pk, project=job.arguments["project"]).first() if pk else None
    return _standing(source, job, now)


def of_source(source: Source, now: dt.datetime) -> Standing:
    its = Q(arguments__source=source.pk) | Q(result__source=source.pk)
    job = _jobs(source.project, bringing.KIND).filter(its).order_by("-pk").first()
    return _standing(source, job, now)


def _standing(source: Source | None, job: Job | None, now: dt.datetime) -> Standing:
    undo = source and _jobs(source.project, undoing.KIND).filter(arguments__source=source.pk).order_by("-pk").first()
    told = (job.result.get("report") if job else None) or (source.report if source else None)
    report = msgspec.convert(told, Report) if told else None
    left = job.remaining_seconds(now) if job else None
    came_in = source is not None and (source.reported_at is not None or source.traces.exists())
    return Standing(
        source=source,
        job=job,
        undoing=undo if undo and (undo.state in _AT_WORK or undo.state == JobState.FAILED) else None,
        undone=undo.result.get("undone", {}) if undo else {},
        tables=telling.told(report, came_in=came_in) if report else [],
        bad=report.bad_lines[:_SHOWN_BAD] if report else [],
        n_bad=report.bad if report else 0,
        report=report,
        came_in=came_in,
        has_bad_lines=job is not None and bad_lines.of_job(job.pk).exists(),
        seconds=None if left is None else dt.timedelta(seconds=left),
    )


def came_in(project: Project) -> QuerySet[Source]:
    """The files of which something is here, or was."""
    traces = Trace.objects.filter(source=OuterRef("pk"))
    return Source.objects.filter(Q(reported_at__isnull=False) | Exists(traces), project=project)


def at_work_or_stopped(project: Project) -> list[Job]:
    """Imports that are under way, or that ended otherwise than they should: the newest."""
    return list(_jobs(project, bringing.KIND).exclude(state=JobState.DONE).order_by("-pk")[:20])


def name_of(job: Job) -> str:
    """What the file of a job is called."""
    return str(job.arguments.get("address") or Path(str(job.arguments.get("path", ""))).name)


def _jobs(project: Project, kind: str) -> JobQuerySet:
    return Job.objects.filter(kind=kind, subject=f"project:{project.pk}")


def has_stores() -> bool:
    return bool(lying.opened())
