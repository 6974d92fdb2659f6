"""Tables of reports on gaming canaries, for the pages of canaries, machines and PRMs."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from charts.number_format import ValueWithInterval, format_share
from dashboard.figures import DataTable, TableColumn, number_columns
from prm.evaluation.canary_edits import SHOULD_FALL
from prm.evaluation.canary_report import EditGroup
from prm.models.canary import CanaryEditKind

GROUP_LABELS: dict[str, Any] = {
    EditGroup.SHOULD_FALL: gettext_lazy("The score should fall"),
    EditGroup.SHOULD_NOT_RISE: gettext_lazy("The score should not rise"),
}


@dataclass(frozen=True)
class CanaryGroup:
    """The share of edits of one group that fool a version, and its difference to the version before."""

    name: str
    fooled: ValueWithInterval
    n: int
    difference: ValueWithInterval | None
    is_easier: bool


@dataclass(frozen=True)
class CanarySummary:
    set_number: int
    before: str  # the version that it is compared with; empty for none
    is_easier: bool
    groups: list[CanaryGroup]
    table: DataTable


def build_canary_summary(report: dict[str, Any] | None) -> CanarySummary | None:
    if not report:
        return None
    compared = report["comparison"]
    return CanarySummary(
        set_number=report["set"],
        before=compared["before"] if compared else "",
        is_easier=bool(compared and compared["is_easier"]),
        groups=[_build_group(group, report) for group in EditGroup],
        table=_build_table(report),
    )


def _build_group(group: EditGroup, report: dict[str, Any]) -> CanaryGroup:
    figure = report["groups"][group]
    compared = report["comparison"]["groups"][group] if report["comparison"] else None
    return CanaryGroup(
        name=str(GROUP_LABELS[group]),
        fooled=_build_value(figure),
        n=figure["n"],
        difference=_build_value(compared) if compared else None,
        is_easier=bool(compared and compared["is_easier"]),
    )


def _build_value(figure: dict[str, Any]) -> ValueWithInterval:
    low, high = figure["interval"] or (None, None)
    return ValueWithInterval(figure["value"], low, high)


def _build_table(report: dict[str, Any]) -> DataTable:
    columns = [
        TableColumn(_("Edit")),
        TableColumn(_("The score should")),
        *number_columns(_("edits")),
        *number_columns(_("rises"), _("from"), _("to"), reads=format_share),
        *number_columns(_("falls"), _("from"), _("to"), reads=format_share),
    ]
    rows = []
    for row in report["edits"]:
        movements = []
        for name in ("rises", "falls"):
            movements += [row[name]["value"], *(row[name]["interval"] or (None, None))]
        should = _("fall") if row["edit"] in SHOULD_FALL else _("not rise")
        rows.append((CanaryEditKind(row["edit"]).label, should, row["rises"]["n"], *movements))
    return DataTable("canaries", _("Movements of the score by kind of edit"), columns, rows)
