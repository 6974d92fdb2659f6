"""The tables that show the report of an import, or of its preview, to people."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from django.utils.translation import gettext as _

from labeling.traces.scan import ImportReport


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
