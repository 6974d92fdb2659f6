"""The agreement page: all statistics, slices, pairs of raters, and bias on hidden gold, from the stored figures."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from charts import forest, matrix, number_format, series
from charts.matrix import Matrix
from charts.svg import Svg
from dashboard import rater_names, statistics
from dashboard.chart import Chart
from dashboard.statistics import StatisticEstimate
from dashboard.tables import DataTable, TableColumn
from labeling.models import Project, Rater
from labeling.models.trace import StepKind
from labeling.quality.project_stats import StoredProjectStats, load_project_stats
from people.models import Membership

FIRST_ERROR_STATISTICS = ("exact", "within_one", "has_error_kappa")
MAX_MATRIX_RATERS = 8
MIN_PAIRS_DRAWN = 5  # a chart leaves out values that rest on fewer pairs; its table has them
MIN_ANSWERS_DRAWN = 5  # the same for answers to hidden gold


@dataclass(frozen=True)
class AgreementPart:
    """A set of submissions that the statistics can cover."""

    key: str  # in the URL; empty for the headline
    name: str
    estimates: dict[str, Any]  # by statistic
    note: str = ""


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
    stats: StoredProjectStats
    parts: Sequence[AgreementPart]
    part: AgreementPart
    estimates: Sequence[StatisticEstimate]
    forest: Svg
    table: DataTable
    confusion: Matrix
    confusion_table: DataTable
    missed_errors: StatisticEstimate
    false_alarms: StatisticEstimate
    n_settled: int
    pairs: Matrix | None
    pair_table: DataTable
    lowest: Sequence[RaterPair]
    by_position: Chart | None
    bias: Sequence[Chart]
    slices: Sequence[AgreementSlice]
    slice_table: DataTable

    min_pairs: int = MIN_PAIRS_DRAWN

    @property
    def n_not_compared(self) -> int:
        """Pairs in which one submission gave up, lapsed or reported a bad problem."""
        return int(self.part.estimates.get("pairs_with_a_censored_report") or 0)

    @property
    def tables(self) -> list[DataTable]:
        charts = [self.by_position, *self.bias]
        tables = [self.table, self.confusion_table, self.pair_table, self.slice_table]
        return [*tables, *(chart.table for chart in charts if chart is not None)]


def load_agreement(project: Project, actor: Membership, *, part: str = "") -> AgreementPage | None:
    """Load the statistics of one part. Return None before the first submission."""
    stats = load_project_stats(project_id=project.pk)
    if stats is None:
        return None
    content = stats.content
    parts = _list_parts(content)
    selected = next((each for each in parts if each.key == part), parts[0])
    estimates = _build_estimates(selected.estimates)
    confusion = content["confusion"]
    pairs = _load_pairs(content["pair"], actor)
    slices = _build_slices(content)
    return AgreementPage(
        stats=stats,
        parts=parts,
        part=selected,
        estimates=estimates,
        forest=_draw_forest(estimates),
        table=_build_statistics_table(estimates),
        confusion=_build_confusion_matrix(confusion["counts"]),
        confusion_table=_build_confusion_table(confusion["counts"]),
        missed_errors=statistics.build_estimate("over_credit", confusion["over_credit"]),
        false_alarms=statistics.build_estimate("over_blame", confusion["over_blame"]),
        n_settled=confusion["n_traces"],
        pairs=_build_pair_matrix(pairs),
        pair_table=_build_pair_table(pairs),
        lowest=_find_lowest_pairs(pairs),
        by_position=_build_position_chart(content.get("position") or []),
        bias=_build_bias_charts(content.get("bias") or {}),
        slices=slices,
        slice_table=_build_slice_table(slices),
    )


def _list_parts(content: dict[str, Any]) -> list[AgreementPart]:
    """List the headline, then all sources, then guideline versions and generations if there are several."""
    headline, recall = content["headline"], content["confusion"].get("recall", {})
    if headline["is_audit_slice"]:
        name, note = _("Audit slice"), _("Drawn at random, independent of active selection.")
    else:
        name, note = _("All submissions"), ""
    # Recall needs a consensus, so it comes with the confusion and not with pairs of raters.
    recalls = {f"recall {rating}": estimate for rating, estimate in recall.items()}
    parts = [AgreementPart("", name, content["confusion"] | recalls | _merge_statistics(headline), note)]
    if everything := content.get("everything"):
        note = _("Active selection prefers difficult traces, so these figures do not estimate the whole project.")
        parts.append(AgreementPart("every-arm", _("All sources"), _merge_statistics(everything), note))
    for dimension, label in (("guideline", _label_guideline_part), ("generation", _label_generation_part)):
        rows = content[dimension]
        if len(rows) > 1:
            parts += [
                AgreementPart(f"{dimension}-{row['key']}", label(row["key"]), _merge_statistics(row)) for row in rows
            ]
    return parts


def _merge_statistics(row: dict[str, Any]) -> dict[str, Any]:
    return {**row["steps"], **row["first_error"]}


def _label_guideline_part(version: int) -> str:
    if version < 0:
        return _("mixed guidelines")
    return _("guideline %(n)d") % {"n": version} if version else _("no guideline")


def _label_guideline_slice(version: int) -> str:
    if version < 0:
        return _("mixed versions")
    return _("version %(n)d") % {"n": version} if version else _("none")


def _label_generation_part(number: int) -> str:
    return _("generation %(n)d") % {"n": number} if number else _("before generation 1")


def _label_generation_slice(number: int) -> str:
    return str(number) if number else _("before the first")


def _build_estimates(estimates: dict[str, Any]) -> list[StatisticEstimate]:
    keys = [*FIRST_ERROR_STATISTICS, *(key for key in statistics.STATISTIC_KINDS if key not in FIRST_ERROR_STATISTICS)]
    return [statistics.build_estimate(key, estimates[key]) for key in keys if key in estimates]


def _draw_forest(estimates: Sequence[StatisticEstimate]) -> Svg:
    values = [value for each in estimates for value in (each.value, each.low, each.high) if value is not None]
    return forest.draw_forest(
        [forest.ForestRow(each.value, each.low, each.high, each.kind.mark) for each in estimates],
        name=_("All statistics with 95 percent intervals"),
        of=forest.choose_axis_range(min(values, default=0.0), 1.0),
        width=288,
    )


def _build_statistics_table(estimates: Sequence[StatisticEstimate]) -> DataTable:
    columns = (
        TableColumn(_("Statistic")),
        *_share_columns(_("value")),
        TableColumn(_("n"), is_number=True),
        TableColumn(_("problems"), is_number=True),
        TableColumn(_("reason if missing")),
        *(
            TableColumn(name, is_number=True, reads=number_format.format_share)
            for name in (_("bootstrap from"), _("bootstrap to"))
        ),
        TableColumn(_("reason if no bootstrap")),
        TableColumn(_("meaning and target")),
    )
    rows = [
        (
            *(str(each.kind.name), each.value, each.low, each.high, each.n, each.n_problems, each.why),
            *(each.bootstrap.low, each.bootstrap.high, each.why_no_bootstrap, str(each.kind.what)),
        )
        for each in estimates
    ]
    return DataTable("agreement", _("all agreement statistics"), columns, rows)


def _build_confusion_matrix(counts: Sequence[Sequence[int]]) -> Matrix:
    ratings = [_("negative"), _("neutral"), _("positive")]
    rows = [
        (label, [matrix.build_count_cell(n, n / sum(row)) if sum(row) else matrix.MatrixCell("0") for n in row])
        for label, row in zip(ratings, counts, strict=True)
    ]
    return Matrix(_("Single ratings by the settled rating of the step"), ratings, rows)


def _build_confusion_table(counts: Sequence[Sequence[int]]) -> DataTable:
    ratings = (_("negative"), _("neutral"), _("positive"))
    columns = (
        TableColumn(_("Settled as")),
        *(TableColumn(_("rated %(rating)s") % {"rating": rating}, is_number=True) for rating in ratings),
    )
    rows = [(label, *row) for label, row in zip(ratings, counts, strict=True)]
    return DataTable("confusion", _("single ratings against consensus"), columns, rows)


def _load_pairs(rows: Sequence[dict[str, Any]], actor: Membership) -> list[RaterPair]:
    keys = {key for row in rows for key in row["raters"]}
    names = rater_names.get_distinct_names(list(Rater.objects.filter(pk__in=keys).select_related("user")), actor)
    return [
        RaterPair(
            (names.get(row["raters"][0], "?"), names.get(row["raters"][1], "?")),
            statistics.build_estimate("exact", row["first_error"].get("exact")),
        )
        for row in rows
    ]


def _find_lowest_pairs(pairs: Sequence[RaterPair]) -> list[RaterPair]:
    known = [pair for pair in pairs if pair.exact.value is not None and pair.exact.n >= MIN_PAIRS_DRAWN]
    return sorted(known, key=lambda pair: pair.exact.value or 0)[:5]


def _build_pair_table(pairs: Sequence[RaterPair]) -> DataTable:
    columns = (
        *(TableColumn(name) for name in (_("Annotator"), _("and annotator"))),
        *_share_columns(_("same first error")),
        TableColumn(_("traces"), is_number=True),
        TableColumn(_("reason if missing")),
    )
    rows = [(*pair.names, *_estimate_cells(pair.exact)) for pair in pairs]
    return DataTable("pairs", _("agreement by pair of annotators"), columns, rows)


def _build_pair_matrix(pairs: Sequence[RaterPair]) -> Matrix | None:
    """Build the lower half of the matrix for the raters who share the most traces."""
    shared: Counter[str] = Counter()
    for pair in pairs:
        shared.update(dict.fromkeys(pair.names, pair.exact.n))
    names = sorted(name for name, _n in shared.most_common(MAX_MATRIX_RATERS))
    if len(names) < 2:
        return None
    by_names = {frozenset(pair.names): pair.exact for pair in pairs}
    rows = [
        (
            name,
            [
                _build_pair_cell(by_names.get(frozenset((name, other)))) if other < name else matrix.MatrixCell()
                for other in names[:-1]
            ],
        )
        for name in names[1:]
    ]
    return Matrix(_("Share of traces with the same first error, by pair of annotators"), names[:-1], rows)


def _build_pair_cell(exact: StatisticEstimate | None) -> matrix.MatrixCell:
    return matrix.MatrixCell() if exact is None else matrix.build_share_cell(exact.value, exact.n, low=0.4, high=0.9)


def _build_position_chart(positions: Sequence[dict[str, Any]]) -> Chart | None:
    rows = [
        (
            *(row["step"] + 1, row["agree"], row.get("low"), row.get("high"), row["n"], row.get("n_problems")),
            *(row["both"], row["one"], statistics.explain_missing_value(row.get("interval_reason"))),
        )
        for row in positions
        if row["n"] >= MIN_PAIRS_DRAWN
    ]
    if not rows:
        return None
    svg = series.draw_dots(
        [series.SeriesPoint(str(step), value, low, high) for step, value, low, high, *_rest in rows],
        name=_("Agreement by step position, with 95 percent intervals by problem"),
        reads=number_format.format_share,
    )
    columns = (
        TableColumn(_("Step"), is_number=True),
        *_share_columns(_("same")),
        *(
            TableColumn(name, is_number=True)
            for name in (_("pairs"), _("problems"), _("marked by both"), _("one marks it"))
        ),
        TableColumn(_("reason if missing")),
    )
    return Chart(svg, DataTable("positions", _("agreement by step position"), columns, rows))


def _build_slices(content: dict[str, Any]) -> list[AgreementSlice]:
    groups = (
        ("domain", _("Domain"), lambda key: key or _("none given")),
        ("guideline", _("Guideline"), _label_guideline_slice),
        ("generation", _("Generation"), _label_generation_slice),
        ("step_kind", _("Kind of step"), lambda key: str(StepKind(key).label)),
    )
    return [
        AgreementSlice(
            group,
            str(label(row["key"])),
            statistics.build_estimate("alpha_nominal", row["steps"].get("alpha_nominal")),
            statistics.build_estimate("exact", row["first_error"].get("exact")) if "first_error" in row else None,
        )
        for dimension, group, label in groups
        for row in content[dimension]
    ]


def _build_slice_table(slices: Sequence[AgreementSlice]) -> DataTable:
    columns = (
        TableColumn(_("By")),
        TableColumn(_("Slice")),
        *_share_columns(_("nominal alpha")),
        TableColumn(_("units"), is_number=True),
        TableColumn(_("reason if missing")),
        *_share_columns(_("same first error")),
        TableColumn(_("traces"), is_number=True),
        TableColumn(_("reason if missing")),
    )
    rows = [(each.group, each.name, *_estimate_cells(each.alpha), *_estimate_cells(each.exact)) for each in slices]
    return DataTable("slices", _("agreement by slice"), columns, rows)


def _estimate_cells(estimate: StatisticEstimate | None) -> tuple[float | None, float | None, float | None, int, str]:
    if estimate is None:
        return None, None, None, 0, ""
    return estimate.value, estimate.low, estimate.high, estimate.n, estimate.why


def _build_bias_charts(bias: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Chart]:
    """Build the charts that have data: errors missed by their step, then false alarms by trace length."""
    charts = (
        _build_bias_chart(
            [(str(row["step"] + 1), row) for row in bias.get("missed", ())],
            key="missed",
            name=_("Missed errors on hidden gold by step, with 95 percent intervals by problem"),
            first=TableColumn(_("Step of the error")),
        ),
        _build_bias_chart(
            [(_label_length(row), row) for row in bias.get("blamed", ())],
            key="blamed",
            name=_("False alarms on hidden gold by trace length, with 95 percent intervals by problem"),
            first=TableColumn(_("Steps of the trace")),
        ),
    )
    return [chart for chart in charts if chart is not None]


def _label_length(row: Mapping[str, Any]) -> str:
    return f"{row['from']}–{row['to']}" if row["to"] else _("%(n)d or more") % {"n": row["from"]}


def _build_bias_chart(
    rows: Sequence[tuple[str, Mapping[str, Any]]], *, key: str, name: str, first: TableColumn
) -> Chart | None:
    if not rows:
        return None
    points = [
        series.SeriesPoint(label, row["value"], row["low"], row["high"])
        for label, row in rows
        if row["n"] >= MIN_ANSWERS_DRAWN
    ]
    columns = (
        first,
        *_share_columns(_("share")),
        *(TableColumn(each, is_number=True) for each in (_("answers"), _("problems"))),
        TableColumn(_("reason if missing")),
    )
    cells = [
        (
            *(label, row["value"], row["low"], row["high"], row["n"], row["n_problems"]),
            statistics.explain_missing_value(row["reason"] or row["interval_reason"]),
        )
        for label, row in rows
    ]
    svg = series.draw_dots(points, name=name, reads=number_format.format_share)
    return Chart(svg, DataTable(key, name, columns, cells))


def _share_columns(name: str) -> list[TableColumn]:
    """Return the columns of a value and of its interval."""
    return [TableColumn(each, is_number=True, reads=number_format.format_share) for each in (name, _("from"), _("to"))]
