"""The report of an import: counts of the file's content and of the added rows, and tables of both for people."""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.utils.translation import gettext as _
from msgspec import Struct

from formats import privacy
from formats.records import BadLine, SubmissionRecord, TraceRecord
from labeling.traces import trace_rows

BAD_LINES_KEPT = 1000
_PATH_ENDS = ("solution", "found_error")


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
    private: dict[str, int] = {}
    masked: int = 0

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
        _add_counts(self.outcomes, [{True: "right", False: "wrong", None: "unknown"}[record.is_right]])
        if record.provenance and record.provenance.segmenter:
            _add_counts(self.segmenters, [record.provenance.segmenter])
        self.count_ratings(record)

    def count_ratings(self, record: TraceRecord) -> None:
        for submission in record.submissions:
            self._count_submission(submission)
        self._count_outcome(record)

    def count_private(self, texts: Iterable[str]) -> bool:
        """Count the private data in the texts, and tell whether there is any."""
        matches = privacy.count_private_in(texts)
        for kind, number in matches.items():
            self.private[kind] = self.private.get(kind, 0) + number
        return bool(matches)

    def count_added(self, rows: trace_rows.ImportRows, numbered: list[trace_rows.NumberedRecord]) -> None:
        """Count what a chunk added."""
        self.problems_added += len(rows.by_table[trace_rows.PROBLEM])
        self.traces_added += len(rows.by_table[trace_rows.TRACE])
        self.steps_added += len(rows.by_table[trace_rows.STEP])
        self.submissions_added += len(rows.by_table[trace_rows.SUBMISSION])
        self.residues += sum(record.residue is not None for record, _ in numbered)

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


def classify_labeler(submission: SubmissionRecord) -> str:
    """Return the machine's name, "people", or "unknown". Pseudonyms are not counted one by one."""
    if submission.machine:
        return submission.machine
    return "unknown" if submission.labeler is None else "people"


def _add_counts(counts: dict[str, int], names: Iterable[str]) -> None:
    for name in names:
        counts[name] = counts.get(name, 0) + 1


# --- tables for people ---------------------------------------------------------------------------------------------


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
    yield ReportFigure(_("new problems"), _format_count(report.problems_added))
    yield ReportFigure(_("new traces"), _format_count(report.traces_added))
    yield ReportFigure(_("new steps"), _format_count(report.steps_added))
    yield ReportFigure(_("new submissions"), _format_count(report.submissions_added))
    yield ReportFigure(_("traces queued"), _format_count(report.queued))
    yield from _nonzero_counts(
        (_("traces made gold"), report.gold_made),
        (_("problems added to the benchmark list"), report.benchmark_problems),
        (_("records with stored original bytes"), report.residues),
    )


def _content_figures(report: ImportReport) -> Iterator[ReportFigure]:
    yield ReportFigure(_("records"), _format_count(report.records))
    yield ReportFigure(_("bad lines"), _format_count(report.bad))
    yield from _nonzero_counts((_("problems"), report.problems))
    kinds = {"live": _("traces generated during rating"), "pregenerated": _("traces generated before rating")}
    yield from _named_counts(report.kinds, kinds)
    yield from (
        ReportFigure(_("split into steps by “%s”") % name, _format_count(n))
        for name, n in sorted(report.segmenters.items())
    )
    people = {"people": _("submissions by raters named in the file"), "unknown": _("submissions by unknown raters")}
    yield from _named_counts({key: n for key, n in report.labels_by.items() if key in people}, people)
    machines = ((name, n) for name, n in sorted(report.labels_by.items()) if name not in people)
    yield from (ReportFigure(_("submissions by machine %s") % name, _format_count(n)) for name, n in machines)
    ends = (
        (_("finish reason %s") % name if name != "None" else _("no finish reason"), n)
        for name, n in sorted(report.finish_reasons.items())
    )
    yield from (ReportFigure(name, _format_count(n)) for name, n in ends)
    yield from _nonzero_counts((_("steps written by raters"), report.written_steps))


def _rating_figures(report: ImportReport) -> Iterator[ReportFigure]:
    """Yield ratings of all options, then of finished paths without quality control, as the published numbers count."""
    names = {"1": _("rated +1"), "0": _("rated 0"), "-1": _("rated -1"), "None": _("shown but not rated")}
    yield from _named_shares(report.ratings, names)
    on_paths = {"1": _("rated +1 on paths"), "0": _("rated 0 on paths"), "-1": _("rated -1 on paths")}
    yield from _named_shares(report.path_ratings, on_paths)
    if report.paths:
        yield ReportFigure(_("finished paths with an error"), _format_share(report.paths_with_error, report.paths))


def _outcome_figures(report: ImportReport) -> Iterator[ReportFigure]:
    if set(report.outcomes) <= {"unknown"}:
        return
    names = {"right": _("right answers"), "wrong": _("wrong answers"), "unknown": _("answers with unknown outcome")}
    yield from _named_shares(report.outcomes, names)
    if report.right_and_rated:
        yield ReportFigure(
            _("right answers whose trace has an error"), _format_share(report.right_with_error, report.right_and_rated)
        )


def _attention_figures(report: ImportReport) -> Iterator[ReportFigure]:
    names = {
        "email": _("possible email addresses"),
        "phone": _("possible telephone numbers"),
        "key": _("possible keys"),
    }
    yield from (ReportFigure(names[kind], _format_count(n)) for kind, n in sorted(report.private.items()))
    near = report.near_duplicates
    yield from _nonzero_counts(
        (_("records with masked data"), report.masked),
        (_("ratings that differ from existing gold"), report.gold_differs),
        (_("ratings without a first error, not made gold"), report.not_gold),
        (_("traces already imported and withdrawn"), report.withdrawn_met),
        (_("near-duplicate problems"), near.problems if near else 0),
    )


def _named_counts(counts: Mapping[str, int], names: Mapping[str, str]) -> Iterator[ReportFigure]:
    yield from (ReportFigure(names[key], _format_count(counts[key])) for key in names if key in counts)


def _named_shares(counts: Mapping[str, int], names: Mapping[str, str]) -> Iterator[ReportFigure]:
    total = sum(counts.values())
    yield from (ReportFigure(names[key], _format_share(counts[key], total)) for key in names if key in counts)


def _nonzero_counts(*counts: tuple[str, int]) -> Iterator[ReportFigure]:
    yield from (ReportFigure(name, _format_count(number)) for name, number in counts if number)


def _format_count(number: int) -> str:
    return f"{number:,}"


def _format_share(number: int, total: int) -> str:
    return f"{number:,} ({100 * number / total:.1f} %)" if total else _format_count(number)


# Write all bad lines of an import to a CSV file for download. The import report only has the first of them.


HEADER = ("line", "column", "reason")


def path_for_job(job_id: int) -> Path:
    return Path(settings.DATA_DIR) / "imports" / f"bad-lines-{job_id}.csv"


@contextmanager
def open_writer(path: Path | None) -> Iterator[Callable[[BadLine], None]]:
    """Yield a function that writes a bad line. It does nothing without a path; a file without bad lines is removed."""
    if path is None:
        yield lambda line: None
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    n_lines = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(HEADER)

        def write(line: BadLine) -> None:
            nonlocal n_lines
            table.writerow((line.line, line.column, line.reason))
            n_lines += 1

        try:
            yield write
        finally:
            if not n_lines:
                path.unlink()
