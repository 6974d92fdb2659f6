"""The agreement of a project as its page shows it: all statistics together, never one alone. Reads the figures that
were computed behind the scenes, and the names of the few people in the matrix."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from dashboard import rater_names, statistics
from dashboard.charts import Chart, forest, matrix, number_format, series
from dashboard.charts.matrix import Matrix
from dashboard.charts.svg import Svg
from dashboard.statistics import StatisticEstimate
from dashboard.tables import DataTable, TableColumn
from labeling.models import Project, Rater
from labeling.models.trace import StepKind
from labeling.quality.project_stats import StoredProjectStats, load_project_stats
from people.models import Membership

# Which readings the statistics of agreement are told of: the headline, or a part that somebody asked for. Reads the


@dataclass(frozen=True)
class AgreementPart:
    key: str  # as the address names it; empty for the headline
    name: str
    told: dict[str, Any]  # by statistic
    note: str = ""


def list_parts(content: dict[str, Any]) -> list[AgreementPart]:
    """The headline first. Versions and generations stand here where there are several."""
    headline, is_slice = content["headline"], content["headline"].get("is_audit_slice")
    name, note = (
        (_("Audit slice"), _("Drawn at random, whatever a PRM chose.")) if is_slice else (_("All readings"), "")
    )
    # What is said of consensus stands with the confusion: two raters alone know no credit.
    found = [AgreementPart("", name, {**_merge_recall(content["confusion"]), **_merge_statistics(headline)}, note)]
    if everything := content.get("everything"):
        note = _("What a PRM chose is harder than the rest: no estimate of the project.")
        found.append(AgreementPart("every-arm", _("Every arm"), _merge_statistics(everything), note))
    for dimension, named in (("guideline", label_guideline), ("generation", label_generation)):
        rows = content[dimension]
        if len(rows) > 1:
            found += [
                AgreementPart(f"{dimension}-{each['key']}", named(each["key"], True), _merge_statistics(each))
                for each in rows
            ]
    return found


def find_part(parts: Sequence[AgreementPart], key: str) -> AgreementPart:
    return next((each for each in parts if each.key == key), parts[0])


def _merge_statistics(told: dict[str, Any]) -> dict[str, Any]:
    return {**told["steps"], **told["first_error"]}


def _merge_recall(told: dict[str, Any]) -> dict[str, Any]:
    return told | {f"recall {value}": share for value, share in told.get("recall", {}).items()}


def label_guideline(version: int, is_alone: bool = False) -> str:
    """`is_alone`: no heading says what it is a version of."""
    if version < 0:
        return _("two guidelines met") if is_alone else _("two versions met")
    if not version:
        return _("no guideline") if is_alone else _("none")
    return (_("guideline %(n)d") if is_alone else _("version %(n)d")) % {"n": version}


def label_generation(number: int, is_alone: bool = False) -> str:
    if not number:
        return _("before generation 1") if is_alone else _("before the first")
    return _("generation %(n)d") % {"n": number} if is_alone else str(number)


# Where raters go wrong on hidden gold: errors missed by their step, sound traces blamed by their length. Each a


MIN_ANSWERS_DRAWN = 5  # answers below which nothing is drawn; the table has them all


def build_bias_charts(told: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Chart]:
    """What there is anything to tell of, missed errors first."""
    found = (
        _build_bias_chart(
            [(str(row["step"] + 1), row) for row in told.get("missed", ())],
            key="missed",
            name=_(
                "Errors of hidden gold that were missed, by the step they are at, with 95 percent intervals by problem"
            ),
            first=TableColumn(_("Step of the error")),
        ),
        _build_bias_chart(
            [(_label_length(row), row) for row in told.get("blamed", ())],
            key="blamed",
            name=_(
                "Sound traces of hidden gold that were blamed, by their steps, with 95 percent intervals by problem"
            ),
            first=TableColumn(_("Steps of the trace")),
        ),
    )
    return [chart for chart in found if chart is not None]


def _label_length(row: Mapping[str, Any]) -> str:
    return f"{row['from']}–{row['to']}" if row["to"] else _("%(n)d or more") % {"n": row["from"]}


def _build_bias_chart(
    rows: Sequence[tuple[str, Mapping[str, Any]]], *, key: str, name: str, first: TableColumn
) -> Chart | None:
    if not rows:
        return None
    drawn = [(label, row) for label, row in rows if row["n"] >= MIN_ANSWERS_DRAWN]
    places = [series.SeriesPoint(label, row["value"], row["low"], row["high"]) for label, row in drawn]
    columns = (
        first,
        *(
            TableColumn(each, is_number=True, reads=number_format.format_share)
            for each in (_("share"), _("from"), _("to"))
        ),
        *(TableColumn(each, is_number=True) for each in (_("answers"), _("problems"))),
        TableColumn(_("what is missing, and why")),
    )
    cells = [
        (label, row["value"], row["low"], row["high"], row["n"], row["n_problems"], _explain_bias_row(row))
        for label, row in rows
    ]
    return Chart(
        series.draw_dots(places, name=name, reads=number_format.format_share), DataTable(key, name, columns, cells)
    )


def _explain_bias_row(row: Mapping[str, Any]) -> str:
    return statistics.explain_missing_value(row["reason"] or row["interval_reason"])


FIRST_ERROR_STATISTICS = ("exact", "within_one", "has_error_kappa")
MAX_MATRIX_RATERS = 8
MIN_PAIRS_DRAWN = 5  # traces, or pairs of readings, below which nothing is drawn


@dataclass(frozen=True)
class AgreementSlice:
    group: str
    name: str
    alpha: StatisticEstimate
    exact: StatisticEstimate | None


@dataclass(frozen=True)
class RaterPair:
    names: tuple[str, str]
    exact: StatisticEstimate


@dataclass(frozen=True)
class AgreementPage:
    shown: StoredProjectStats
    parts: Sequence[AgreementPart]
    part: AgreementPart  # of which the figures are
    figures: Sequence[StatisticEstimate]
    forest: Svg
    table: DataTable
    confusion: Matrix
    confusion_table: DataTable
    over_credit: StatisticEstimate
    over_blame: StatisticEstimate
    n_settled: int
    pairs: Matrix | None
    pair_table: DataTable
    lowest: Sequence[RaterPair]
    by_position: Chart | None
    bias: Sequence[Chart]
    slices: Sequence[AgreementSlice]
    slice_table: DataTable

    fewest: int = MIN_PAIRS_DRAWN

    @property
    def n_not_compared(self) -> int:
        """Pairs of readings of which one was given up, lapsed or reported a bad problem."""
        return int(self.part.told.get("pairs_with_a_censored_report") or 0)

    @property
    def tables(self) -> list[DataTable]:
        charts = [self.by_position, *self.bias]
        found = [self.table, self.confusion_table, self.pair_table, self.slice_table]
        return [*found, *(chart.table for chart in charts if chart is not None)]


def load_agreement(project: Project, actor: Membership, *, part: str = "") -> AgreementPage | None:
    """None where nothing was submitted yet. `part` is the key of the one whose statistics are asked for."""
    shown = load_project_stats(project_id=project.pk)
    if shown is None:
        return None
    content = shown.content
    parts = list_parts(content)
    asked = find_part(parts, part)
    figures = _build_estimates(asked.told)
    pairs = _load_pairs(content["pair"], actor)
    slices = list(_build_slices(content))
    return AgreementPage(
        shown=shown,
        parts=parts,
        part=asked,
        figures=figures,
        forest=_draw_forest(figures),
        table=_build_statistics_table(figures),
        confusion=_build_confusion_matrix(content["confusion"]["counts"]),
        confusion_table=_build_confusion_table(content["confusion"]["counts"]),
        over_credit=statistics.build_estimate("over_credit", content["confusion"]["over_credit"]),
        over_blame=statistics.build_estimate("over_blame", content["confusion"]["over_blame"]),
        n_settled=content["confusion"]["n_traces"],
        pairs=_build_pair_matrix(pairs),
        pair_table=_build_pair_table(pairs),
        lowest=_find_lowest_pairs(pairs),
        by_position=_build_position_chart(content.get("position") or []),
        bias=build_bias_charts(content.get("bias") or {}),
        slices=slices,
        slice_table=_build_slice_table(slices),
    )


def _build_estimates(told: dict[str, Any]) -> list[StatisticEstimate]:
    order = [*FIRST_ERROR_STATISTICS, *(key for key in statistics.STATISTIC_KINDS if key not in FIRST_ERROR_STATISTICS)]
    return [statistics.build_estimate(key, told[key]) for key in order if key in told]


def _draw_forest(figures: Sequence[StatisticEstimate]) -> Svg:
    known = [each for figure in figures for each in (figure.value, figure.low, figure.high) if each is not None]
    lines = [forest.ForestRow(each.value, each.low, each.high, each.kind.mark) for each in figures]
    return forest.draw_forest(
        lines,
        name=_("All statistics with 95 percent intervals"),
        of=forest.choose_axis_range(min(known, default=0.0), 1.0),
        width=288,
    )


def _build_statistics_table(figures: Sequence[StatisticEstimate]) -> DataTable:
    columns = (
        TableColumn(_("Statistic")),
        *(
            TableColumn(name, is_number=True, reads=number_format.format_share)
            for name in (_("value"), _("from"), _("to"))
        ),
        TableColumn(_("n"), is_number=True),
        TableColumn(_("problems"), is_number=True),
        TableColumn(_("what is missing, and why")),
        *(
            TableColumn(name, is_number=True, reads=number_format.format_share)
            for name in (_("bootstrap from"), _("bootstrap to"))
        ),
        TableColumn(_("why no bootstrap")),
        TableColumn(_("what it is, what is good")),
    )
    rows = [
        (
            *(str(f.kind.name), f.value, f.low, f.high, f.n, f.n_problems, f.why),
            *(f.bootstrap.low, f.bootstrap.high, f.why_no_bootstrap, str(f.kind.what)),
        )
        for f in figures
    ]
    return DataTable("agreement", _("all statistics of agreement"), columns, rows)


def _build_confusion_matrix(counts: Sequence[Sequence[int]]) -> Matrix:
    said = [_("negative"), _("neutral"), _("positive")]
    rows = [
        (label, [matrix.build_count_cell(n, n / sum(row)) if sum(row) else matrix.MatrixCell("0") for n in row])
        for label, row in zip(said, counts, strict=True)
    ]
    return Matrix(_("What single ratings said of steps that are settled so"), said, rows)


def _build_confusion_table(counts: Sequence[Sequence[int]]) -> DataTable:
    said = (_("negative"), _("neutral"), _("positive"))
    columns = (
        TableColumn(_("Settled as")),
        *(TableColumn(_("said %(name)s") % {"name": n}, is_number=True) for n in said),
    )
    rows = [(label, *row) for label, row in zip(said, counts, strict=True)]
    return DataTable("confusion", _("single ratings against consensus"), columns, rows)


def _load_pairs(found: Sequence[dict[str, Any]], actor: Membership) -> list[RaterPair]:
    keys = {key for each in found for key in each["raters"]}
    people = rater_names.get_distinct_names(list(Rater.objects.filter(pk__in=keys).select_related("user")), actor)
    return [
        RaterPair(
            (people.get(each["raters"][0], "?"), people.get(each["raters"][1], "?")),
            statistics.build_estimate("exact", each["first_error"].get("exact")),
        )
        for each in found
    ]


def _find_lowest_pairs(pairs: Sequence[RaterPair]) -> list[RaterPair]:
    """Of those with a few traces in common: one alone says nothing of two people."""
    known = [pair for pair in pairs if pair.exact.value is not None and pair.exact.n >= MIN_PAIRS_DRAWN]
    return sorted(known, key=lambda pair: pair.exact.value or 0)[:5]


def _build_pair_table(pairs: Sequence[RaterPair]) -> DataTable:
    columns = (
        *(TableColumn(name) for name in (_("Rater"), _("and rater"))),
        *(
            TableColumn(name, is_number=True, reads=number_format.format_share)
            for name in (_("first error exact"), _("from"), _("to"))
        ),
        TableColumn(_("traces"), is_number=True),
        TableColumn(_("what is missing, and why")),
    )
    rows = [(*pair.names, *_estimate_cells(pair.exact)) for pair in pairs]
    return DataTable("pairs", _("agreement by pair of raters"), columns, rows)


def _build_pair_matrix(pairs: Sequence[RaterPair]) -> Matrix | None:
    """Those with most in common; below the diagonal alone, the other half is the same."""
    together: Counter[str] = Counter()
    for pair in pairs:
        together.update(dict.fromkeys(pair.names, pair.exact.n))
    people = sorted(name for name, _n in together.most_common(MAX_MATRIX_RATERS))
    by_names = {frozenset(pair.names): pair.exact for pair in pairs}
    if len(people) < 2:
        return None
    rows = [
        (
            name,
            [
                _build_pair_cell(by_names.get(frozenset((name, other)))) if other < name else matrix.MatrixCell()
                for other in people[:-1]
            ],
        )
        for name in people[1:]
    ]
    return Matrix(_("Share of traces with the same first error, by pair of raters"), people[:-1], rows)


def _build_pair_cell(exact: StatisticEstimate | None) -> matrix.MatrixCell:
    return matrix.MatrixCell() if exact is None else matrix.build_share_cell(exact.value, exact.n, low=0.4, high=0.9)


def _build_position_chart(found: Sequence[dict[str, Any]]) -> Chart | None:
    found = [row for row in found if row["n"] >= MIN_PAIRS_DRAWN]
    if not found:
        return None
    rows = [
        (
            *(row["step"] + 1, row["agree"], row.get("low"), row.get("high")),
            *(
                row["n"],
                row.get("n_problems"),
                row["both"],
                row["one"],
                statistics.explain_missing_value(row.get("interval_reason")),
            ),
        )
        for row in found
    ]
    places = [series.SeriesPoint(str(row[0]), row[1], row[2], row[3]) for row in rows]
    svg = series.draw_dots(
        places,
        name=_("Agreement by step position, with 95 percent intervals by problem"),
        reads=number_format.format_share,
    )
    columns = (
        TableColumn(_("Step"), is_number=True),
        *(
            TableColumn(name, is_number=True, reads=number_format.format_share)
            for name in (_("same"), _("from"), _("to"))
        ),
        *(
            TableColumn(name, is_number=True)
            for name in (_("pairs"), _("problems"), _("both see it"), _("one sees it"))
        ),
        TableColumn(_("what is missing, and why")),
    )
    return Chart(svg, DataTable("positions", _("agreement by step position"), columns, rows))


def _build_slices(content: dict[str, Any]) -> list[AgreementSlice]:
    groups = (
        ("domain", _("Domain"), lambda key: key or _("none given")),
        ("guideline", _("Guideline"), label_guideline),
        ("generation", _("Generation"), label_generation),
        ("step_kind", _("Kind of step"), lambda key: str(StepKind(key).label)),
    )
    return [
        AgreementSlice(
            group,
            str(name(each["key"])),
            statistics.build_estimate("alpha_nominal", each["steps"].get("alpha_nominal")),
            statistics.build_estimate("exact", each["first_error"].get("exact")) if "first_error" in each else None,
        )
        for dimension, group, name in groups
        for each in content[dimension]
    ]


def _build_slice_table(slices: Sequence[AgreementSlice]) -> DataTable:
    columns = (
        TableColumn(_("By")),
        TableColumn(_("Slice")),
        *(
            TableColumn(name, is_number=True, reads=number_format.format_share)
            for name in (_("alpha nominal"), _("from"), _("to"))
        ),
        TableColumn(_("units"), is_number=True),
        TableColumn(_("what is missing, and why")),
        *(
            TableColumn(name, is_number=True, reads=number_format.format_share)
            for name in (_("first error exact"), _("from"), _("to"))
        ),
        TableColumn(_("traces"), is_number=True),
        TableColumn(_("what is missing, and why")),
    )
    rows = [(each.group, each.name, *_estimate_cells(each.alpha), *_estimate_cells(each.exact)) for each in slices]
    return DataTable("slices", _("agreement by slice"), columns, rows)


def _estimate_cells(figure: StatisticEstimate | None) -> tuple[float | None, float | None, float | None, int, str]:
    return (figure.value, figure.low, figure.high, figure.n, figure.why) if figure else (None, None, None, 0, "")
