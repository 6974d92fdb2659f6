"""Read a file as an import would: detect its format, and report what it contains.

The report of an import also counts the rows that it added. This module also makes the tables that show both reports to
people.
"""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from django.conf import settings
from django.utils.translation import gettext as _
from msgspec import Struct

from formats import catalog, input_files, privacy, raw_values
from formats.privacy import PrivacyMode
from formats.records import BadLine, SubmissionRecord, TraceRecord
from jobs.failures import JobFailed
from labeling.models.gold import GoldUse
from labeling.models.trace import ImportedLabelKind
from labeling.traces import trace_rows
from labeling.traces.record_changes import RecordChanges, change_records

BAD_LINES_KEPT = 1000
METADATA_NAMES_KEPT = 50
TASK_RECORDS = 200  # records of which the kind of task is counted
_CODE_WORDS = re.compile(r"\b(?:cod(?:e|ing)|programming|software|swe[ -]?agent)\b", re.IGNORECASE)
BAD_LINES_HEADER = ("line", "column", "reason")
_PATH_ENDS = ("solution", "found_error")
# Kinds of ratings that require the name of their rater or machine.
NAMED_KINDS = (ImportedLabelKind.HUMAN, ImportedLabelKind.MONTE_CARLO, ImportedLabelKind.JUDGE)
_MACHINE_NAMES = {ImportedLabelKind.MONTE_CARLO: "Monte Carlo: {}", ImportedLabelKind.JUDGE: "judge: {}"}


class LabelerNotNamed(JobFailed):
    """The ratings belong to a single rater or machine, but no name was given."""


class ImportOptions(Struct, kw_only=True):
    """The user's statements about a file, and how to read it."""

    format: str = "auto"
    segmenter: str = ""  # for texts that are not divided into steps; empty: choose one per text
    columns: str = ""  # columns or keys that have other names than the format's: "question=problem, notes="
    labels: ImportedLabelKind = ImportedLabelKind.JUDGMENTS
    labels_by: str = ""
    gold_use: str = GoldUse.HIDDEN.value
    purpose: str = "rate"
    private: PrivacyMode = "count"
    licence: str = ""
    statement: str = ""
    is_lenient: bool = False
    step_changes: list[RecordChanges] = []  # made by hand in the preview

    def column_names(self) -> dict[str, str]:
        try:
            return raw_values.parse_columns(self.columns)
        except ValueError as error:
            raise catalog.UnknownFormat(f"fields to rename: {error}") from error

    def check(self) -> None:
        if self.labels in NAMED_KINDS and not self.labels_by.strip():
            raise LabelerNotNamed(f'labels of kind "{self.labels}" require the name of the rater or machine')


class NearDuplicateSummary(Struct):
    """Problems of the file that are similar to another problem of the project."""

    problems: int = 0
    groups: int = 0
    examples: list[list[str]] = []  # the beginnings of two texts


class ImportReport(Struct):
    records: int = 0
    bad: int = 0
    bad_lines: list[BadLine] = []  # the first of them

    # The content of the file, whether new to the project or not.
    problems: int = 0
    kinds: dict[str, int] = {}
    finish_reasons: dict[str, int] = {}
    ratings: dict[str, int] = {}  # of all options that were shown
    path_ratings: dict[str, int] = {}  # of the options on the paths of finished submissions
    paths: int = 0
    paths_with_error: int = 0
    written_steps: int = 0
    outcomes: dict[str, int] = {}
    right_and_rated: int = 0
    right_with_error: int = 0
    labels_by: dict[str, int] = {}
    segmenters: dict[str, int] = {}
    metadata: dict[str, int] = {}  # records by field that was kept as metadata, the first fields only
    tasks: dict[str, int] = {}  # kinds of tasks of the first records
    private: dict[str, int] = {}
    masked: int = 0
    with_images: int = 0  # records
    images: int = 0  # in these records

    # The import result.
    problems_added: int = 0
    traces_added: int = 0
    steps_added: int = 0
    submissions_added: int = 0
    residues: int = 0  # records whose original bytes are stored
    queued: int = 0
    gold_made: int = 0
    gold_differs: int = 0  # ratings that differ from existing gold
    not_gold: int = 0  # ratings from which no first error follows
    benchmark_problems: int = 0
    withdrawn_met: int = 0  # withdrawn traces that the file contains
    near_duplicates: NearDuplicateSummary | None = None

    def count_bad_line(self, line: BadLine) -> None:
        self.bad += 1
        if len(self.bad_lines) < BAD_LINES_KEPT:
            self.bad_lines.append(line)

    def count_record(self, record: TraceRecord) -> None:
        self.records += 1
        _add_counts(self.kinds, [record.kind])
        if self.records <= TASK_RECORDS:
            _add_counts(self.tasks, [guess_task(record)])
        _add_counts(self.outcomes, [{True: "right", False: "wrong", None: "unknown"}[record.is_right]])
        if record.provenance and record.provenance.segmenter:
            _add_counts(self.segmenters, [record.provenance.segmenter])
        self.with_images += bool(record.images)
        self.images += len(record.images)
        for name in record.metadata:
            if name in self.metadata or len(self.metadata) < METADATA_NAMES_KEPT:
                _add_counts(self.metadata, [name])
        self.count_ratings(record)

    def count_ratings(self, record: TraceRecord) -> None:
        for submission in record.submissions:
            self._count_submission(submission)
        self._count_outcome(record)

    def count_private(self, record: TraceRecord) -> bool:
        """Count the private data in the record, and tell whether there is any."""
        matches = privacy.count_private_in(record)
        for kind, number in matches.items():
            self.private[kind] = self.private.get(kind, 0) + number
        return bool(matches)

    def _count_submission(self, submission: SubmissionRecord) -> None:
        _add_counts(self.finish_reasons, [str(submission.finish_reason)])
        _add_counts(self.labels_by, [classify_labeler(submission)])
        for turn in submission.turns:
            self.written_steps += turn.written is not None
            _add_counts(self.ratings, [str(judgment.rating) for judgment in turn.shown or ()])
        if submission.finish_reason in _PATH_ENDS and not submission.is_quality_control:
            path = [rating for turn in submission.turns if (rating := turn.path_rating()) is not None]
            self.paths += 1
            self.paths_with_error += -1 in path
            _add_counts(self.path_ratings, map(str, path))

    def _count_outcome(self, record: TraceRecord) -> None:
        """Count right answers whose trace has an error, which outcome labels cannot show."""
        if record.is_right and record.submissions:
            self.right_and_rated += 1
            self.right_with_error += any(
                turn.path_rating() == -1 for submission in record.submissions for turn in submission.turns
            )


def guess_task(record: TraceRecord) -> str:
    """Return the template of rating rules that fits a trace: "math" without a sign of anything else."""
    scaffold = record.provenance.scaffold if record.provenance else ""
    if _CODE_WORDS.search(f"{record.problem.domain} {scaffold}".replace("_", " ")):
        return "code"
    kinds = {step.kind for step in record.steps}
    if kinds & {"action", "observation"}:
        return "agents"
    if "system" in kinds:  # rules for an assistant that only answers
        return "policy"
    has_code = any("```" in step.options[0].text for step in record.steps if step.options)
    return "code" if has_code else "math"


def classify_labeler(submission: SubmissionRecord) -> str:
    """Return the machine's name, "people", or "unknown". Pseudonyms are not counted one by one."""
    if submission.machine:
        return submission.machine
    return "unknown" if submission.labeler is None else "people"


def _add_counts(counts: dict[str, int], names: Iterable[str]) -> None:
    for name in names:
        counts[name] = counts.get(name, 0) + 1


class ImportScan:
    """The report of a file while it is read."""

    def __init__(self) -> None:
        self.report = ImportReport()
        self._problems: set[int] = set()
        self._stream: BinaryIO | None = None

    def begin(self, stream: BinaryIO) -> None:
        self._stream = stream

    def bytes_read(self) -> int:
        """Return the progress in bytes, because the number of records is unknown before the end."""
        return 0 if self._stream is None else input_files.read_position(self._stream)

    def count(self, record: TraceRecord | BadLine) -> None:
        if isinstance(record, BadLine):
            self.report.count_bad_line(record)
            return
        self.report.count_record(record)
        self._problems.add(int(trace_rows.digest_problem(record.problem)[:16], 16))
        self.report.problems = len(self._problems)


def resolve_format(path: Path, choices: ImportOptions) -> str:
    """Return the named format, or detect it. Raises `UnknownFormat` if no format matches."""
    if choices.format != "auto":
        return catalog.get_input_format(choices.format).name
    table, columns = input_files.detect_table_kind(path), choices.column_names()
    with input_files.open_file(path) as stream:
        return catalog.detect_format(stream, table=table, columns=columns).name


def read_records(
    path: Path,
    choices: ImportOptions,
    *,
    scan: ImportScan | None = None,
    n_decoded: int | None = None,
    images: Path | None = None,
) -> Iterator[TraceRecord | BadLine]:
    """Yield every record as it is imported: images loaded, private data masked, ratings attributed to their labeler.
    With `n_decoded`, only this many images are decoded. `images` is a folder or an archive of images: only callers who
    may read any file may choose it."""
    with input_files.open_file(path) as stream:
        if scan is not None:
            scan.begin(stream)
        table = input_files.detect_table_kind(path)
        columns = choices.column_names()
        found = catalog.read_traces(
            stream, format=choices.format, table=table, segmenter=choices.segmenter, columns=columns
        )
        if catalog.get_input_format(choices.format).has_images:
            found = catalog.load_images(found, path, place=images, n_decoded=n_decoded)
        records = _prepare_records(found, choices, scan)
        for record in change_records(records, choices.step_changes) if choices.step_changes else records:
            if scan is not None:
                scan.count(record)
            yield record


def _prepare_records(
    found: Iterable[TraceRecord | BadLine], choices: ImportOptions, scan: ImportScan | None
) -> Iterator[TraceRecord | BadLine]:
    for record in found:
        if scan is not None and choices.labels == "none" and isinstance(record, TraceRecord):
            scan.report.count_ratings(record)  # the ratings are in the file, although they are not imported
        yield record if isinstance(record, BadLine) else _prepare_record(record, choices, scan)


def _prepare_record(record: TraceRecord, choices: ImportOptions, scan: ImportScan | None) -> TraceRecord | BadLine:
    line = record.line or 1
    has_private = scan.report.count_private(record) if scan is not None else choices.private != "count"
    if has_private and choices.private == "refuse" and (kinds := privacy.describe_private(record)):
        return BadLine(line, 1, f"this record may contain {kinds}: remove the data, or choose to mask or count it")
    if has_private and choices.private == "mask":
        record = privacy.mask_record(record)
        if scan is not None:
            scan.report.masked += 1
    try:
        return attribute_labels(record, labels=choices.labels, labels_by=choices.labels_by)
    except LabelsContradictFile as error:
        return BadLine(line, 1, str(error))


class LabelsContradictFile(Exception):
    """The file names another kind of rater than the user."""


def attribute_labels(record: TraceRecord, *, labels: ImportedLabelKind, labels_by: str) -> TraceRecord:
    """Attribute the ratings of a record. Raises `LabelsContradictFile` if the file contradicts."""
    if labels == "judgments":
        return record
    if labels == "none":
        record.submissions = []
        return record
    if labels in ("gold", "human"):
        _refuse_machines(record, labels)
    if labels in NAMED_KINDS:
        for submission in record.submissions:
            submission.labeler = labels_by if labels == "human" else None
            submission.machine = _MACHINE_NAMES[labels].format(labels_by) if labels in _MACHINE_NAMES else ""
        record.residue = None  # the original bytes name another labeler
    return record


def _refuse_machines(record: TraceRecord, labels: ImportedLabelKind) -> None:
    machine = next((submission.machine for submission in record.submissions if submission.machine), "")
    if machine:
        target = "gold" if labels == "gold" else "human ratings"
        raise LabelsContradictFile(f"the file names a machine as the rater ({machine}): its ratings cannot be {target}")


class BadLineGroup(NamedTuple):
    """Bad lines with the same reason: the place of the first one, and their number."""

    first: BadLine
    n: int


def group_bad_lines(lines: Iterable[BadLine]) -> list[BadLineGroup]:
    groups: dict[str, list[BadLine]] = {}
    for line in lines:
        groups.setdefault(line.reason, []).append(line)
    return [BadLineGroup(each[0], len(each)) for each in groups.values()]


def bad_lines_path(job_id: int) -> Path:
    return Path(settings.DATA_DIR) / "imports" / f"bad-lines-{job_id}.csv"


@contextmanager
def open_bad_lines(path: Path | None) -> Iterator[Callable[[BadLine], None]]:
    """Yield a function that writes a bad line. It does nothing without a path; a file without bad lines is removed."""
    if path is None:
        yield lambda line: None
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    n_lines = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(BAD_LINES_HEADER)

        def write(line: BadLine) -> None:
            nonlocal n_lines
            table.writerow((line.line, line.column, line.reason))
            n_lines += 1

        try:
            yield write
        finally:
            if not n_lines:
                path.unlink()


class ReportFigure(NamedTuple):
    name: str
    value: str


class ReportTable(NamedTuple):
    name: str
    figures: list[ReportFigure]


def make_report_tables(report: ImportReport, *, came_in: bool = True) -> list[ReportTable]:
    """Make the tables of a report for the page and the command line. Most zeros are left out."""
    tables = (
        ReportTable(_("Import result"), list(_result_figures(report)) if came_in else []),
        ReportTable(_("File content"), list(_content_figures(report))),
        ReportTable(_("Ratings"), list(_rating_figures(report))),
        ReportTable(_("Outcomes"), list(_outcome_figures(report))),
        ReportTable(_("Needs attention"), list(_attention_figures(report))),
    )
    return [table for table in tables if table.figures]


def _result_figures(report: ImportReport) -> Iterator[ReportFigure]:
    yield _count(_("new problems"), report.problems_added)
    yield _count(_("new traces"), report.traces_added)
    yield _count(_("new steps"), report.steps_added)
    yield _count(_("new submissions"), report.submissions_added)
    yield _count(_("traces queued"), report.queued)
    yield from _nonzero_counts(
        (_("traces marked as gold"), report.gold_made),
        (_("problems added to the benchmark list"), report.benchmark_problems),
        (_("records stored byte for byte so that exports can reproduce them"), report.residues),
    )


def _content_figures(report: ImportReport) -> Iterator[ReportFigure]:
    yield _count(_("records"), report.records)
    yield _count(_("bad lines"), report.bad)
    yield from _nonzero_counts((_("problems"), report.problems))
    kinds = {"live": _("traces generated during rating"), "pregenerated": _("traces generated before rating")}
    yield from _named_counts(report.kinds, kinds)
    for name, n in sorted(report.segmenters.items()):
        yield _count(_("split into steps by “%s”") % name, n)
    people = {"people": _("submissions by raters named in the file"), "unknown": _("submissions by unknown raters")}
    yield from _named_counts(report.labels_by, people)
    for name, n in sorted(report.labels_by.items()):
        if name not in people:
            yield _count(_("submissions by machine %s") % name, n)
    for name, n in sorted(report.finish_reasons.items()):
        yield _count(_("finish reason %s") % name if name != "None" else _("no finish reason"), n)
    yield from _nonzero_counts((_("steps written by raters"), report.written_steps))
    yield from _nonzero_counts((_("records with images"), report.with_images), (_("images"), report.images))
    for name, n in sorted(report.metadata.items()):
        yield _count(_("field %s, kept as metadata") % name, n)


def _rating_figures(report: ImportReport) -> Iterator[ReportFigure]:
    """Yield ratings of all options, then of finished paths without quality control, as the published numbers count."""
    names = {"1": _("rated +1"), "0": _("rated 0"), "-1": _("rated -1"), "None": _("shown but not rated")}
    yield from _named_shares(report.ratings, names)
    on_paths = {
        "1": _("rated +1 in finished submissions"),
        "0": _("rated 0 in finished submissions"),
        "-1": _("rated -1 in finished submissions"),
    }
    yield from _named_shares(report.path_ratings, on_paths)
    if report.paths:
        yield _share(_("finished submissions with an error"), report.paths_with_error, report.paths)


def _outcome_figures(report: ImportReport) -> Iterator[ReportFigure]:
    if set(report.outcomes) <= {"unknown"}:
        return
    names = {
        "right": _("correct answers"),
        "wrong": _("incorrect answers"),
        "unknown": _("answers with unknown outcome"),
    }
    yield from _named_shares(report.outcomes, names)
    if report.right_and_rated:
        yield _share(
            _("correct answers whose trace contains an error"), report.right_with_error, report.right_and_rated
        )


def _attention_figures(report: ImportReport) -> Iterator[ReportFigure]:
    private = {
        "email": _("possible email addresses"),
        "key": _("possible secret keys"),
        "phone": _("possible phone numbers"),
    }
    yield from _named_counts(report.private, private)
    near = report.near_duplicates
    yield from _nonzero_counts(
        (_("records with masked personal data or keys"), report.masked),
        (_("ratings that differ from existing gold"), report.gold_differs),
        (_("ratings without a first error, not marked as gold"), report.not_gold),
        (_("traces already imported and withdrawn"), report.withdrawn_met),
        (_("near-duplicate problems"), near.problems if near else 0),
    )


def _named_counts(counts: Mapping[str, int], names: Mapping[str, str]) -> Iterator[ReportFigure]:
    return (_count(names[key], counts[key]) for key in names if key in counts)


def _named_shares(counts: Mapping[str, int], names: Mapping[str, str]) -> Iterator[ReportFigure]:
    total = sum(counts.values())
    return (_share(names[key], counts[key], total) for key in names if key in counts)


def _nonzero_counts(*counts: tuple[str, int]) -> Iterator[ReportFigure]:
    return (_count(name, number) for name, number in counts if number)


def _count(name: str, number: int) -> ReportFigure:
    return ReportFigure(name, f"{number:,}")


def _share(name: str, number: int, total: int) -> ReportFigure:
    return ReportFigure(name, f"{number:,} ({100 * number / total:.1f} %)")
