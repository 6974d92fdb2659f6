"""The agreement page: all statistics, slices, pairs of raters, and bias on hidden gold, from the stored figures."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from charts import cells, number_format, series
from charts.cells import Matrix
from charts.svg import Svg
from dashboard import rater_names, render, statistics
from dashboard.access import safe_view
from dashboard.consensus_comparison import compare_consensus
from dashboard.figures import Chart, DataTable, TableColumn, number_columns
from dashboard.pool_estimates import load_pool_estimates
from dashboard.statistics import StatisticEstimate
from formats import integers
from labeling.models import Project, Rater
from labeling.models.consensus import FitBasis
from labeling.models.trace import StepKind
from labeling.projects import trace_questions
from labeling.quality import project_stats, redundancy
from labeling.quality.project_stats import await_stats, load_project_stats
from labeling.quality.rater_model import load_current_fit
from people.models import Membership
from people.roles import Action

IMPORTED = "imported"  # key of the part, and prefix of the keys of its alternatives
FIRST_ERROR_STATISTICS = ("exact", "within_one", "has_error_kappa")
MAX_MATRIX_RATERS = 8
MAX_RATER_CHOICES = 200
MIN_PAIRS_DRAWN = 5  # a chart leaves out values that rest on fewer pairs; its table has them
MIN_ANSWERS_DRAWN = 5  # the same for answers to hidden gold


@dataclass(frozen=True)
class AgreementPart:
    """A set of submissions that the statistics can cover."""

    key: str  # in the URL; empty for the headline
    name: str
    estimates: dict[str, Any]  # by statistic
    note: str = ""

    @property
    def is_imported(self) -> bool:
        return self.key.startswith(IMPORTED)


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


def load_agreement(
    project: Project, actor: Membership, *, part: str = "", raters: Sequence[int] = (), is_only: bool = False
) -> dict[str, Any] | None:
    """Load the statistics of one part, or those of some raters or of all others. Return None before the first
    submission."""
    stats = load_project_stats(project_id=project.pk)
    if stats is None:
        return None
    content = stats.content
    parts = _list_parts(content)
    selected = next((each for each in parts if each.key == part), parts[0])
    if raters:
        parts = _compute_by_raters(project, raters, is_only=is_only)
        selected = next((each for each in parts if each.key == part), parts[0])
    comparison = compare_consensus(project, raters, is_only=is_only) if raters else None
    estimates = _build_estimates(selected.estimates)
    confusion, confusion_table = _build_confusion(content["confusion"]["counts"])
    population = (selected.is_imported and content["imported"]["agreement"]) or content
    pairs = _load_pairs(population["pair"], actor)
    by_position = _build_position_chart(content.get("position") or [])
    bias = _build_bias_charts(content.get("bias") or {})
    slices = _build_slices(population)
    return {
        "stats": stats,
        "parts": parts,
        "chosen": raters,
        "is_only": is_only,
        "raters": _load_rater_choices(project, content, actor),
        "part": selected,
        # Pairs in which one submission gave up, lapsed or reported a bad problem.
        "n_not_compared": int(selected.estimates.get("pairs_with_a_censored_report") or 0),
        "estimates": estimates,
        "forest": _draw_forest(estimates),
        "confusion": confusion,
        "missed_errors": statistics.build_estimate("over_credit", content["confusion"]["over_credit"]),
        "false_alarms": statistics.build_estimate("over_blame", content["confusion"]["over_blame"]),
        "answers": _build_answers(project, content.get("answers") or {}),
        "explanations": _build_explanations(project, content.get("explanations") or {}),
        "n_settled": content["confusion"]["n_traces"],
        "consensus": comparison,
        "has_pairs": any(part.estimates.get("pairs") for part in parts),
        "pairs": _build_pair_matrix(pairs),
        "lowest": _find_lowest_pairs(pairs),
        "min_pairs": MIN_PAIRS_DRAWN,
        "by_position": by_position,
        "bias": bias,
        "slices": slices,
        "tables": [
            *(
                _build_statistics_table(estimates),
                confusion_table,
                _build_pair_table(pairs),
                _build_slice_table(slices),
            ),
            *(chart.table for chart in (by_position, *bias) if chart),
            *([comparison.table] if comparison else []),
        ],
    }


def _build_explanations(project: Project, stored: Mapping[str, Any]) -> list[StatisticEstimate]:
    """Return the agreement on what the project asks about errors."""
    asked = {"kind": project.asks_error_category, "severity": project.asks_severity}
    return [statistics.build_estimate(name, stored[name]) for name, is_asked in asked.items() if is_asked and stored]


def _build_answers(project: Project, stored: Mapping[str, Any]) -> list[StatisticEstimate]:
    """Return the agreement on each question on the whole trace."""
    return [
        statistics.build_estimate(
            question.code, stored[question.code], statistics.describe_answer_statistic(str(question.title))
        )
        for question in trace_questions.load_trace_questions(project)
        if question.code in stored
    ]


def _compute_by_raters(project: Project, raters: Sequence[int], *, is_only: bool) -> list[AgreementPart]:
    """Return the headline of the chosen raters and that of their imported labels, those with labels first."""
    chosen: dict[str, Any] = {"only" if is_only else "without": raters}
    headline = project_stats.compute_headline_by_raters(project_id=project.pk, **chosen)
    if is_only:
        key, name = "only", _("Only the selected annotators")
        note = _("Counts only traces for which the selected annotators made both compared submissions.")
    else:
        key, name = "without", _("Without the selected annotators")
        note = _("Leaves out traces for which a selected annotator made one of the two compared submissions.")
    now = _("The panels below still include all annotators.")
    parts = [AgreementPart(key, name, _merge_statistics(headline), f"{note} {now}")]
    if imported := headline["imported"]:
        of_files = _list_imported_parts(imported, recalls={})
        of_files[0] = replace(of_files[0], note=f"{of_files[0].note} {now}")
        parts = [*parts, *of_files] if headline["n_traces"] else of_files
    return parts


def _load_rater_choices(project: Project, content: dict[str, Any], actor: Membership) -> list[tuple[int, str]]:
    """Return the raters with labels made here or imported, by name."""
    pairs = (content["imported"]["agreement"] or {}).get("pair", ())
    keys = {*map(int, content["raters"]), *(key for row in pairs for key in row["raters"])}
    raters = Rater.objects.filter(project=project, pk__in=keys).select_related("user")[:MAX_RATER_CHOICES]
    return sorted(rater_names.get_distinct_names(list(raters), actor).items(), key=lambda choice: choice[1])


def _list_parts(content: dict[str, Any]) -> list[AgreementPart]:
    """List the headline, all sources, imported labels, alternatives, and several guideline versions and generations.

    The first part is the one with labels: imported ones if none were made here.
    """
    headline, recall = content["headline"], content["confusion"].get("recall", {})
    if headline["is_audit_slice"]:
        name, note = _("Audit slice"), _("Drawn at random, independently of active selection.")
    else:
        name, note = _("All submissions"), ""
    # Recall needs a consensus, so it comes with the confusion and not with pairs of raters.
    recalls = {f"recall {rating}": estimate for rating, estimate in recall.items()}
    parts = [AgreementPart("", name, content["confusion"] | recalls | _merge_statistics(headline), note)]
    if imported := content["imported"]["agreement"]:
        is_first = not headline["n_traces"]
        parts = (parts if not is_first else []) + _list_imported_parts(
            imported, recalls=content["confusion"] | recalls if is_first else {}
        )
    if (headline.get("alternatives") or {}).get("alpha_nominal", {}).get("n"):
        parts.append(
            AgreementPart("alternatives", _("Alternatives"), headline["alternatives"], _explain_alternatives())
        )
    if everything := content.get("everything"):
        note = _("Active selection prefers difficult traces, so these figures do not represent the whole project.")
        parts.append(AgreementPart("every-arm", _("All sources"), _merge_statistics(everything), note))
    for dimension, label in (("guideline", _label_guideline), ("generation", _label_generation)):
        rows = content[dimension]
        if len(rows) > 1:
            parts += [
                AgreementPart(f"{dimension}-{row['key']}", label(row["key"]), _merge_statistics(row)) for row in rows
            ]
    return parts


def _list_imported_parts(imported: dict[str, Any], *, recalls: dict[str, Any]) -> list[AgreementPart]:
    note = ngettext(
        "From files: %(n)d labeler, %(traces)d traces. Measured separately from the labels made in Stepmark.",
        "From files: %(n)d labelers, %(traces)d traces. Measured separately from the labels made in Stepmark.",
        imported["n_raters"],
    ) % {"n": imported["n_raters"], "traces": imported["n_traces"]}
    parts = [AgreementPart(IMPORTED, _("Imported labels"), recalls | _merge_statistics(imported), note)]
    if imported["alternatives"]["alpha_nominal"]["n"]:
        name, what = _("Imported alternatives"), _explain_alternatives()
        parts.append(AgreementPart(f"{IMPORTED}-alternatives", name, imported["alternatives"], what))
    return parts


def _explain_alternatives() -> str:
    return _(
        "Alternatives are rated only where an annotator found the error. If two annotators rated the same"
        " alternative, both found the same error, which raises these figures."
    )


def _merge_statistics(row: dict[str, Any]) -> dict[str, Any]:
    return {**row["steps"], **row["first_error"]}


def _label_guideline(version: int) -> str:
    if version < 0:
        return _("mixed guidelines")
    return _("guideline %(n)d") % {"n": version} if version else _("no guideline")


def _label_generation(number: int) -> str:
    return _("generation %(n)d") % {"n": number} if number else _("before generation 1")


def _build_estimates(estimates: dict[str, Any]) -> list[StatisticEstimate]:
    keys = [*FIRST_ERROR_STATISTICS, *(key for key in statistics.STATISTIC_KINDS if key not in FIRST_ERROR_STATISTICS)]
    return [statistics.build_estimate(key, estimates[key]) for key in keys if key in estimates]


def _draw_forest(estimates: Sequence[StatisticEstimate]) -> Svg:
    values = [value for each in estimates for value in (each.value, each.low, each.high) if value is not None]
    return cells.draw_forest(
        [cells.ForestRow(each.value, each.low, each.high, each.kind.mark) for each in estimates],
        name=_("All statistics with 95 percent intervals"),
        of=cells.choose_axis_range(min(values, default=0.0), 1.0),
    )


def _build_statistics_table(estimates: Sequence[StatisticEstimate]) -> DataTable:
    columns = (
        TableColumn(_("Statistic")),
        *statistics.share_columns(_("value")),
        *number_columns(_("n"), _("problems")),
        TableColumn(_("reason if missing")),
        *number_columns(_("bootstrap from"), _("bootstrap to"), reads=number_format.format_share),
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


def _build_confusion(counts: Sequence[Sequence[int]]) -> tuple[Matrix, DataTable]:
    ratings = [_("negative"), _("neutral"), _("positive")]
    matrix_rows = [
        (label, [cells.build_count_cell(n, n / sum(row)) if sum(row) else cells.MatrixCell("0") for n in row])
        for label, row in zip(ratings, counts, strict=True)
    ]
    columns = (
        TableColumn(_("Settled as")),
        *number_columns(*(_("rated %(rating)s") % {"rating": rating} for rating in ratings)),
    )
    rows = [(label, *row) for label, row in zip(ratings, counts, strict=True)]
    table = DataTable("confusion", _("ratings against consensus"), columns, rows)
    return Matrix(_("Annotators’ ratings compared with the settled rating of each step"), ratings, matrix_rows), table


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
        TableColumn(_("Annotator")),
        TableColumn(_("Other annotator")),
        *_estimate_columns(_("same first error"), _("traces")),
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
                _build_pair_cell(by_names.get(frozenset((name, other)))) if other < name else cells.MatrixCell()
                for other in names[:-1]
            ],
        )
        for name in names[1:]
    ]
    return Matrix(_("Share of traces with the same first error, by pair of annotators"), names[:-1], rows)


def _build_pair_cell(exact: StatisticEstimate | None) -> cells.MatrixCell:
    return cells.MatrixCell() if exact is None else cells.build_share_cell(exact.value, exact.n, low=0.4, high=0.9)


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
        *number_columns(_("Step")),
        *statistics.share_columns(_("same")),
        *number_columns(_("pairs"), _("problems"), _("marked by both"), _("marked by one")),
        TableColumn(_("reason if missing")),
    )
    return Chart(svg, DataTable("positions", _("agreement by step position"), columns, rows))


def _build_slices(content: dict[str, Any]) -> list[AgreementSlice]:
    groups = (
        ("domain", _("Domain"), lambda key: key or _("none given")),
        ("guideline", _("Guideline"), _label_guideline),
        ("generation", _("Generation"), _label_generation),
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
        for row in content.get(dimension, ())
    ]


def _build_slice_table(slices: Sequence[AgreementSlice]) -> DataTable:
    columns = (
        TableColumn(_("Sliced by")),
        TableColumn(_("Slice")),
        *_estimate_columns(_("nominal alpha"), _("units")),
        *_estimate_columns(_("same first error"), _("traces")),
    )
    rows = [(each.group, each.name, *_estimate_cells(each.alpha), *_estimate_cells(each.exact)) for each in slices]
    return DataTable("slices", _("agreement by slice"), columns, rows)


def _estimate_columns(name: str, n: str) -> list[TableColumn]:
    return [*statistics.share_columns(name), *number_columns(n), TableColumn(_("reason if missing"))]


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
        *statistics.share_columns(_("share")),
        *number_columns(_("answers"), _("problems")),
        TableColumn(_("reason if missing")),
    )
    table_rows = [
        (
            *(label, row["value"], row["low"], row["high"], row["n"], row["n_problems"]),
            statistics.explain_missing_value(row["reason"] or row["interval_reason"]),
        )
        for label, row in rows
    ]
    svg = series.draw_dots(points, name=name, reads=number_format.format_share)
    return Chart(svg, DataTable(key, name, columns, table_rows))


@safe_view(Action.READ)
def show_agreement(request: HttpRequest, actor: Membership) -> HttpResponse:
    raters = [key for text in request.GET.getlist("rater") if (key := integers.parse_integer(text, digits=18))]
    is_only = request.GET.get("choice") == "only"
    agreement = load_agreement(actor.project, actor, part=request.GET.get("of", ""), raters=raters, is_only=is_only)
    await_stats(stats=agreement["stats"] if agreement else None, now=timezone.now())
    pool = load_pool_estimates(actor.project)
    return render.project_page(
        request,
        actor,
        "dashboard/agreement.html",
        here="agreement",
        tables=[*(agreement["tables"] if agreement else []), *([pool.table] if pool else [])],
        pool=pool,
        agreement=agreement,
        fit=load_current_fit(actor.project.pk),
        assisted_fit=load_current_fit(actor.project.pk, FitBasis.ASSISTED),
        confident=redundancy.CONFIDENT,
    )
