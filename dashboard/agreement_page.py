"""The agreement of a project as its page shows it: all statistics together, never one alone. Reads the figures that
were computed behind the scenes, and the names of the few people in the matrix."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from dashboard import agreement_parts, bias_charts, names, statistics
from dashboard.agreement_parts import Part
from dashboard.charts import Chart, forest, matrix, series, words
from dashboard.charts.drawing import Svg
from dashboard.charts.matrix import Matrix
from dashboard.statistics import Figure
from dashboard.tables import Column, Table
from labeling import quality
from labeling.models import Project, Rater
from labeling.models.trace import StepKind
from labeling.quality.figures import Shown
from people.models import Membership

FIRST = ("exact", "within_one", "has_error_kappa")
MOST_PEOPLE = 8
FEWEST = 5  # traces, or pairs of readings, below which nothing is drawn


@dataclass(frozen=True)
class Slice:
    group: str
    name: str
    alpha: Figure
    exact: Figure | None


@dataclass(frozen=True)
class Pair:
    names: tuple[str, str]
    exact: Figure


@dataclass(frozen=True)
class Agreement:
    shown: Shown
    parts: Sequence[Part]
    part: Part  # of which the figures are
    figures: Sequence[Figure]
    forest: Svg
    table: Table
    confusion: Matrix
    confusion_table: Table
    over_credit: Figure
    over_blame: Figure
    n_settled: int
    pairs: Matrix | None
    pair_table: Table
    lowest: Sequence[Pair]
    by_position: Chart | None
    bias: Sequence[Chart]
    slices: Sequence[Slice]
    slice_table: Table

    fewest: int = FEWEST

    @property
    def n_not_compared(self) -> int:
        """Pairs of readings of which one was given up, lapsed or reported a bad problem."""
        return int(self.part.told.get("pairs_with_a_censored_report") or 0)

    @property
    def tables(self) -> list[Table]:
        charts = [self.by_position, *self.bias]
        found = [self.table, self.confusion_table, self.pair_table, self.slice_table]
        return [*found, *(chart.table for chart in charts if chart is not None)]


def of(project: Project, actor: Membership, *, part: str = "") -> Agreement | None:
    """None where nothing was submitted yet. `part` is the key of the one whose statistics are asked for."""
    shown = quality.figures_of(project_id=project.pk)
    if shown is None:
        return None
    content = shown.content
    parts = agreement_parts.of(content)
    asked = agreement_parts.chosen(parts, part)
    figures = _figures(asked.told)
    pairs = _pairs(content["pair"], actor)
    slices = list(_slices(content))
    return Agreement(
        shown=shown,
        parts=parts,
        part=asked,
        figures=figures,
        forest=_forest(figures),
        table=_table(figures),
        confusion=_confusion(content["confusion"]["counts"]),
        confusion_table=_confusion_table(content["confusion"]["counts"]),
        over_credit=statistics.figure("over_credit", content["confusion"]["over_credit"]),
        over_blame=statistics.figure("over_blame", content["confusion"]["over_blame"]),
        n_settled=content["confusion"]["n_traces"],
        pairs=_matrix(pairs),
        pair_table=_pair_table(pairs),
        lowest=_lowest(pairs),
        by_position=_by_position(content.get("position") or []),
        bias=bias_charts.of(content.get("bias") or {}),
        slices=slices,
        slice_table=_slice_table(slices),
    )


def _figures(told: dict[str, Any]) -> list[Figure]:
    order = [*FIRST, *(key for key in statistics.KINDS if key not in FIRST)]
    return [statistics.figure(key, told[key]) for key in order if key in told]


def _forest(figures: Sequence[Figure]) -> Svg:
    known = [each for figure in figures for each in (figure.value, figure.low, figure.high) if each is not None]
    lines = [forest.Line(each.value, each.low, each.high, each.kind.mark) for each in figures]
    return forest.draw(
        lines,
        name=_("All statistics with 95 percent intervals"),
        of=forest.axis(min(known, default=0.0), 1.0),
        width=288,
    )


def _table(figures: Sequence[Figure]) -> Table:
    columns = (
        Column(_("Statistic")),
        *(Column(name, is_number=True, reads=words.share) for name in (_("value"), _("from"), _("to"))),
        Column(_("n"), is_number=True),
        Column(_("problems"), is_number=True),
        Column(_("what is missing, and why")),
        *(Column(name, is_number=True, reads=words.share) for name in (_("bootstrap from"), _("bootstrap to"))),
        Column(_("why no bootstrap")),
        Column(_("what it is, what is good")),
    )
    rows = [
        (
            *(str(f.kind.name), f.value, f.low, f.high, f.n, f.n_problems, f.why),
            *(f.bootstrap.low, f.bootstrap.high, f.why_no_bootstrap, str(f.kind.what)),
        )
        for f in figures
    ]
    return Table("agreement", _("all statistics of agreement"), columns, rows)


def _confusion(counts: Sequence[Sequence[int]]) -> Matrix:
    said = [_("negative"), _("neutral"), _("positive")]
    rows = [
        (label, [matrix.counted(n, n / sum(row)) if sum(row) else matrix.Cell("0") for n in row])
        for label, row in zip(said, counts, strict=True)
    ]
    return Matrix(_("What single ratings said of steps that are settled so"), said, rows)


def _confusion_table(counts: Sequence[Sequence[int]]) -> Table:
    said = (_("negative"), _("neutral"), _("positive"))
    columns = (Column(_("Settled as")), *(Column(_("said %(name)s") % {"name": n}, is_number=True) for n in said))
    rows = [(label, *row) for label, row in zip(said, counts, strict=True)]
    return Table("confusion", _("single ratings against consensus"), columns, rows)


def _pairs(found: Sequence[dict[str, Any]], actor: Membership) -> list[Pair]:
    keys = {key for each in found for key in each["raters"]}
    people = names.apart(list(Rater.objects.filter(pk__in=keys).select_related("user")), actor)
    return [
        Pair(
            (people.get(each["raters"][0], "?"), people.get(each["raters"][1], "?")),
            statistics.figure("exact", each["first_error"].get("exact")),
        )
        for each in found
    ]


def _lowest(pairs: Sequence[Pair]) -> list[Pair]:
    """Of those with a few traces in common: one alone says nothing of two people."""
    known = [pair for pair in pairs if pair.exact.value is not None and pair.exact.n >= FEWEST]
    return sorted(known, key=lambda pair: pair.exact.value or 0)[:5]


def _pair_table(pairs: Sequence[Pair]) -> Table:
    columns = (
        *(Column(name) for name in (_("Rater"), _("and rater"))),
        *(Column(name, is_number=True, reads=words.share) for name in (_("first error exact"), _("from"), _("to"))),
        Column(_("traces"), is_number=True),
        Column(_("what is missing, and why")),
    )
    rows = [(*pair.names, *_told(pair.exact)) for pair in pairs]
    return Table("pairs", _("agreement by pair of raters"), columns, rows)


def _matrix(pairs: Sequence[Pair]) -> Matrix | None:
    """Those with most in common; below the diagonal alone, the other half is the same."""
    together: Counter[str] = Counter()
    for pair in pairs:
        together.update(dict.fromkeys(pair.names, pair.exact.n))
    people = sorted(name for name, _n in together.most_common(MOST_PEOPLE))
    by_names = {frozenset(pair.names): pair.exact for pair in pairs}
    if len(people) < 2:
        return None
    rows = [
        (
            name,
            [_cell(by_names.get(frozenset((name, other)))) if other < name else matrix.Cell() for other in people[:-1]],
        )
        for name in people[1:]
    ]
    return Matrix(_("Share of traces with the same first error, by pair of raters"), people[:-1], rows)


def _cell(exact: Figure | None) -> matrix.Cell:
    return matrix.Cell() if exact is None else matrix.cell(exact.value, exact.n, low=0.4, high=0.9)


def _by_position(found: Sequence[dict[str, Any]]) -> Chart | None:
    found = [row for row in found if row["n"] >= FEWEST]
    if not found:
        return None
    rows = [
        (
            *(row["step"] + 1, row["agree"], row.get("low"), row.get("high")),
            *(row["n"], row.get("n_problems"), row["both"], row["one"], statistics.why(row.get("interval_reason"))),
        )
        for row in found
    ]
    places = [series.Place(str(row[0]), row[1], row[2], row[3]) for row in rows]
    svg = series.dots(
        places, name=_("Agreement by step position, with 95 percent intervals by problem"), reads=words.share
    )
    columns = (
        Column(_("Step"), is_number=True),
        *(Column(name, is_number=True, reads=words.share) for name in (_("same"), _("from"), _("to"))),
        *(Column(name, is_number=True) for name in (_("pairs"), _("problems"), _("both see it"), _("one sees it"))),
        Column(_("what is missing, and why")),
    )
    return Chart(svg, Table("positions", _("agreement by step position"), columns, rows))


def _slices(content: dict[str, Any]) -> list[Slice]:
    groups = (
        ("domain", _("Domain"), lambda key: key or _("none given")),
        ("guideline", _("Guideline"), agreement_parts.guideline),
        ("generation", _("Generation"), agreement_parts.generation),
        ("step_kind", _("Kind of step"), lambda key: str(StepKind(key).label)),
    )
    return [
        Slice(
            group,
            str(name(each["key"])),
            statistics.figure("alpha_nominal", each["steps"].get("alpha_nominal")),
            statistics.figure("exact", each["first_error"].get("exact")) if "first_error" in each else None,
        )
        for dimension, group, name in groups
        for each in content[dimension]
    ]


def _slice_table(slices: Sequence[Slice]) -> Table:
    columns = (
        Column(_("By")),
        Column(_("Slice")),
        *(Column(name, is_number=True, reads=words.share) for name in (_("alpha nominal"), _("from"), _("to"))),
        Column(_("units"), is_number=True),
        Column(_("what is missing, and why")),
        *(Column(name, is_number=True, reads=words.share) for name in (_("first error exact"), _("from"), _("to"))),
        Column(_("traces"), is_number=True),
        Column(_("what is missing, and why")),
    )
    rows = [(each.group, each.name, *_told(each.alpha), *_told(each.exact)) for each in slices]
    return Table("slices", _("agreement by slice"), columns, rows)


def _told(figure: Figure | None) -> tuple[float | None, float | None, float | None, int, str]:
    return (figure.value, figure.low, figure.high, figure.n, figure.why) if figure else (None, None, None, 0, "")
