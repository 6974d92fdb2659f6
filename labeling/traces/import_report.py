"""What an import says of itself: counts by which a known file can be recognised, and what came of it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from django.utils.translation import gettext as _
from msgspec import Struct

from formats import privacy
from formats.records import BadLine, SubmissionRecord, TraceRecord
from labeling.traces import import_rows

BAD_LINES_KEPT = 1000
_PATH_ENDS = ("solution", "found_error")


class NearDuplicateSummary(Struct):
    """Problems of the file that say nearly what another one of the project says."""

    problems: int = 0
    groups: int = 0
    examples: list[list[str]] = []  # the beginnings of two texts


class ImportReport(Struct):
    records: int = 0
    bad: int = 0
    bad_lines: list[BadLine] = []  # the first of them

    # What the file says, whether or not it is new here.
    problems: int = 0
    kinds: dict[str, int] = {}
    finish_reasons: dict[str, int] = {}
    ratings: dict[str, int] = {}  # of all options that were shown
    path_ratings: dict[str, int] = {}  # of the options that the paths went on with
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

    # What came of it.
    problems_added: int = 0
    traces_added: int = 0
    steps_added: int = 0
    submissions_added: int = 0
    residues: int = 0  # records whose own bytes are kept beside the columns
    queued: int = 0
    gold_made: int = 0
    gold_differs: int = 0  # ratings that say otherwise than the gold that stands
    not_gold: int = 0  # ratings that tell no first error
    benchmark_problems: int = 0
    withdrawn_met: int = 0
    near_duplicates: NearDuplicateSummary | None = None

    def refuse(self, line: BadLine) -> None:
        self.bad += 1
        if len(self.bad_lines) < BAD_LINES_KEPT:
            self.bad_lines.append(line)

    def see(self, record: TraceRecord) -> None:
        self.records += 1
        _add_counts(self.kinds, [record.kind])
        _add_counts(self.outcomes, [{True: "right", False: "wrong", None: "unknown"}[record.is_right]])
        if record.provenance and record.provenance.segmenter:
            _add_counts(self.segmenters, [record.provenance.segmenter])
        self.see_ratings(record)

    def see_ratings(self, record: TraceRecord) -> None:
        for submission in record.submissions:
            self._see_submission(submission)
        self._see_outcome(record)

    def see_private(self, texts: Iterable[str]) -> bool:
        found = privacy.count_private_in(texts)
        for kind, number in found.items():
            self.private[kind] = self.private.get(kind, 0) + number
        return bool(found)

    def add(self, made: import_rows.ImportRows, numbered: list[import_rows.NumberedRecord]) -> None:
        """Count what a chunk added."""
        self.problems_added += len(made.of[import_rows.PROBLEM])
        self.traces_added += len(made.of[import_rows.TRACE])
        self.steps_added += len(made.of[import_rows.STEP])
        self.submissions_added += len(made.of[import_rows.SUBMISSION])
        self.residues += sum(record.residue is not None for record, _ in numbered)

    def _see_submission(self, submission: SubmissionRecord) -> None:
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

    def _see_outcome(self, record: TraceRecord) -> None:
        """How often a right answer comes by a wrong way: what outcome supervision cannot see."""
        if record.is_right and record.submissions:
            self.right_and_rated += 1
            self.right_with_error += any(
                turn.path_rating() == -1 for submission in record.submissions for turn in submission.turns
            )


def classify_labeler(submission: SubmissionRecord) -> str:
    """Whose ratings the file says these are, in four kinds: single pseudonyms are not counted."""
    if submission.machine:
        return submission.machine
    return "unknown" if submission.labeler is None else "people"


def _add_counts(counts: dict[str, int], names: Iterable[str]) -> None:
    for name in names:
        counts[name] = counts.get(name, 0) + 1


# A report in words for people: tables of names and figures, the same on the page and from the command line.


class ReportFigure(NamedTuple):
    name: str
    value: str


class ReportTable(NamedTuple):
    name: str
    figures: list[ReportFigure]


def make_report_tables(report: ImportReport, *, came_in: bool = True) -> list[ReportTable]:
    """What the file holds, what came of it, and what somebody should look at; nothing that is nought for no reason."""
    tables = (
        ReportTable(_("What came of it"), list(_result_figures(report)) if came_in else []),
        ReportTable(_("What the file holds"), list(_content_figures(report))),
        ReportTable(_("Ratings"), list(_rating_figures(report))),
        ReportTable(_("Outcomes"), list(_outcome_figures(report))),
        ReportTable(_("To look at"), list(_attention_figures(report))),
    )
    return [table for table in tables if table.figures]


def _result_figures(report: ImportReport) -> Iterator[ReportFigure]:
    yield ReportFigure(_("new problems"), _format_count(report.problems_added))
    yield ReportFigure(_("new traces"), _format_count(report.traces_added))
    yield ReportFigure(_("new steps"), _format_count(report.steps_added))
    yield ReportFigure(_("new submissions"), _format_count(report.submissions_added))
    yield ReportFigure(_("traces queued"), _format_count(report.queued))
    yield from _nonzero_counts(
        (_("traces that became gold"), report.gold_made),
        (_("problems put on the list of a benchmark"), report.benchmark_problems),
        (_("records kept with their own bytes"), report.residues),
    )


def _content_figures(report: ImportReport) -> Iterator[ReportFigure]:
    yield ReportFigure(_("records"), _format_count(report.records))
    yield ReportFigure(_("bad lines"), _format_count(report.bad))
    yield from _nonzero_counts((_("problems"), report.problems))
    kinds = {"live": _("traces generated while rating"), "pregenerated": _("traces generated before rating")}
    yield from _named_counts(report.kinds, kinds)
    yield from (
        ReportFigure(_("cut into steps by “%s”") % name, _format_count(n))
        for name, n in sorted(report.segmenters.items())
    )
    people = {"people": _("submissions by raters whom the file names"), "unknown": _("submissions by unknown raters")}
    yield from _named_counts({key: n for key, n in report.labels_by.items() if key in people}, people)
    machines = ((name, n) for name, n in sorted(report.labels_by.items()) if name not in people)
    yield from (ReportFigure(_("ratings by a machine, %s") % name, _format_count(n)) for name, n in machines)
    ends = (
        (_("finish reason %s") % name if name != "None" else _("no finish reason"), n)
        for name, n in sorted(report.finish_reasons.items())
    )
    yield from (ReportFigure(name, _format_count(n)) for name, n in ends)
    yield from _nonzero_counts((_("steps written by raters"), report.written_steps))


def _rating_figures(report: ImportReport) -> Iterator[ReportFigure]:
    """Of all options, and of the paths alone: without gold-checked and unfinished ones, as the published figures."""
    names = {"1": _("rated +1"), "0": _("rated 0"), "-1": _("rated -1"), "None": _("shown and not rated")}
    yield from _named_shares(report.ratings, names)
    on_paths = {"1": _("on the paths: +1"), "0": _("on the paths: 0"), "-1": _("on the paths: -1")}
    yield from _named_shares(report.path_ratings, on_paths)
    if report.paths:
        yield ReportFigure(_("finished paths with an error"), _format_share(report.paths_with_error, report.paths))


def _outcome_figures(report: ImportReport) -> Iterator[ReportFigure]:
    if set(report.outcomes) <= {"unknown"}:
        return
    names = {"right": _("right answers"), "wrong": _("wrong answers"), "unknown": _("answers not judged")}
    yield from _named_shares(report.outcomes, names)
    if report.right_and_rated:
        yield ReportFigure(
            _("right answers whose trace has an error"), _format_share(report.right_with_error, report.right_and_rated)
        )


def _attention_figures(report: ImportReport) -> Iterator[ReportFigure]:
    names = {"email": _("e-mail addresses"), "phone": _("telephone numbers"), "key": _("keys")}
    yield from (
        ReportFigure(_("what looks like %s") % names[kind], _format_count(n))
        for kind, n in sorted(report.private.items())
    )
    near = report.near_duplicates
    yield from _nonzero_counts(
        (_("records with something masked"), report.masked),
        (_("ratings that differ from the gold that stands"), report.gold_differs),
        (_("ratings that tell no first error, and made no gold"), report.not_gold),
        (_("traces met that are withdrawn from the queue"), report.withdrawn_met),
        (_("problems nearly like another one"), near.problems if near else 0),
    )


def _named_counts(counts: Mapping[str, int], names: Mapping[str, str]) -> Iterator[ReportFigure]:
    yield from (ReportFigure(names[key], _format_count(counts[key])) for key in names if key in counts)


def _named_shares(counts: Mapping[str, int], names: Mapping[str, str]) -> Iterator[ReportFigure]:
    whole = sum(counts.values())
    yield from (ReportFigure(names[key], _format_share(counts[key], whole)) for key in names if key in counts)


def _nonzero_counts(*given: tuple[str, int]) -> Iterator[ReportFigure]:
    yield from (ReportFigure(name, _format_count(number)) for name, number in given if number)


def _format_count(number: int) -> str:
    return f"{number:,}"


def _format_share(number: int, whole: int) -> str:
    return f"{number:,} ({100 * number / whole:.1f} %)" if whole else _format_count(number)
