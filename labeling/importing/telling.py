"""A report in words for people: tables of names and figures, the same on the page and from the command line."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from django.utils.translation import gettext as _

from labeling.importing.report import Report


class Figure(NamedTuple):
    name: str
    value: str


class Table(NamedTuple):
    name: str
    figures: list[Figure]


def told(report: Report, *, came_in: bool = True) -> list[Table]:
    """What the file holds, what came of it, and what somebody should look at; nothing that is nought for no reason."""
    tables = (
        Table(_("What came of it"), list(_came(report)) if came_in else []),
        Table(_("What the file holds"), list(_held(report))),
        Table(_("Ratings"), list(_ratings(report))),
        Table(_("Outcomes"), list(_outcomes(report))),
        Table(_("To look at"), list(_looked_at(report))),
    )
    return [table for table in tables if table.figures]


def _came(report: Report) -> Iterator[Figure]:
    yield Figure(_("new problems"), _n(report.problems_added))
    yield Figure(_("new traces"), _n(report.traces_added))
    yield Figure(_("new steps"), _n(report.steps_added))
    yield Figure(_("new submissions"), _n(report.submissions_added))
    yield Figure(_("traces queued"), _n(report.queued))
    yield from _unless_nought(
        (_("traces that became gold"), report.gold_made),
        (_("problems put on the list of a benchmark"), report.benchmark_problems),
        (_("records kept with their own bytes"), report.residues),
    )


def _held(report: Report) -> Iterator[Figure]:
    yield Figure(_("records"), _n(report.records))
    yield Figure(_("bad lines"), _n(report.bad))
    yield from _unless_nought((_("problems"), report.problems))
    kinds = {"live": _("traces generated while rating"), "pregenerated": _("traces generated before rating")}
    yield from _each(report.kinds, kinds)
    yield from (Figure(_("cut into steps by “%s”") % name, _n(n)) for name, n in sorted(report.segmenters.items()))
    people = {"people": _("submissions by raters whom the file names"), "unknown": _("submissions by unknown raters")}
    yield from _each({key: n for key, n in report.labels_by.items() if key in people}, people)
    machines = ((name, n) for name, n in sorted(report.labels_by.items()) if name not in people)
    yield from (Figure(_("ratings by a machine, %s") % name, _n(n)) for name, n in machines)
    ends = (
        (_("finish reason %s") % name if name != "None" else _("no finish reason"), n)
        for name, n in sorted(report.finish_reasons.items())
    )
    yield from (Figure(name, _n(n)) for name, n in ends)
    yield from _unless_nought((_("steps written by raters"), report.written_steps))


def _ratings(report: Report) -> Iterator[Figure]:
    """Of all options, and of the paths alone: without gold-checked and unfinished ones, as the published figures."""
    names = {"1": _("rated +1"), "0": _("rated 0"), "-1": _("rated -1"), "None": _("shown and not rated")}
    yield from _shares(report.ratings, names)
    on_paths = {"1": _("on the paths: +1"), "0": _("on the paths: 0"), "-1": _("on the paths: -1")}
    yield from _shares(report.path_ratings, on_paths)
    if report.paths:
        yield Figure(_("finished paths with an error"), _of(report.paths_with_error, report.paths))


def _outcomes(report: Report) -> Iterator[Figure]:
    if set(report.outcomes) <= {"unknown"}:
        return
    names = {"right": _("right answers"), "wrong": _("wrong answers"), "unknown": _("answers not judged")}
    yield from _shares(report.outcomes, names)
    if report.right_and_rated:
        yield Figure(_("right answers whose trace has an error"), _of(report.right_with_error, report.right_and_rated))


def _looked_at(report: Report) -> Iterator[Figure]:
    names = {"email": _("e-mail addresses"), "phone": _("telephone numbers"), "key": _("keys")}
    yield from (Figure(_("what looks like %s") % names[kind], _n(n)) for kind, n in sorted(report.private.items()))
    near = report.near_duplicates
    yield from _unless_nought(
        (_("records with something masked"), report.masked),
        (_("ratings that differ from the gold that stands"), report.gold_differs),
        (_("ratings that tell no first error, and made no gold"), report.not_gold),
        (_("traces met that are withdrawn from the queue"), report.withdrawn_met),
        (_("problems nearly like another one"), near.problems if near else 0),
    )


def _each(counts: Mapping[str, int], names: Mapping[str, str]) -> Iterator[Figure]:
    yield from (Figure(names[key], _n(counts[key])) for key in names if key in counts)


def _shares(counts: Mapping[str, int], names: Mapping[str, str]) -> Iterator[Figure]:
    whole = sum(counts.values())
    yield from (Figure(names[key], _of(counts[key], whole)) for key in names if key in counts)


def _unless_nought(*given: tuple[str, int]) -> Iterator[Figure]:
    yield from (Figure(name, _n(number)) for name, number in given if number)


def _n(number: int) -> str:
    return f"{number:,}"


def _of(number: int, whole: int) -> str:
    return f"{number:,} ({100 * number / whole:.1f} %)" if whole else _n(number)
