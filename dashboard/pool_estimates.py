"""Figures of the whole pool on the agreement page: of people alone, and with a machine that judged all traces."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from charts import number_format
from charts.number_format import ValueWithInterval, format_share
from dashboard.figures import DataTable, TableColumn, number_columns
from dashboard.statistics import explain_missing_value
from labeling.models import Project
from machines import passports
from machines.models import MachinePassport

_NAMES = {
    "error_rate": gettext_lazy("Traces with an error"),
    "error_rate_right": gettext_lazy("Traces with an error among those with a correct final answer"),
    "agreement": gettext_lazy("Traces on which two annotators agree"),
    "negative": gettext_lazy("Negative steps"),
    "neutral": gettext_lazy("Neutral steps"),
    "positive": gettext_lazy("Positive steps"),
}


@dataclass(frozen=True)
class PoolEstimate:
    key: str
    name: str
    human: ValueWithInterval
    powered: ValueWithInterval
    saved: str  # how much shorter the interval is
    n_labeled: int
    n_pool: int
    why: str


@dataclass(frozen=True)
class PoolEstimates:
    passport: MachinePassport
    rows: list[PoolEstimate]
    table: DataTable


def load_pool_estimates(project: Project) -> PoolEstimates | None:
    """Return the figures with the machine that shortens the interval of the error rate most, from its passport."""
    found = [row for row in passports.list_valid(project) if row.content["pool"]["error_rate"]["human"] is not None]
    if not found:
        return None
    passport = max(found, key=lambda row: row.content["pool"]["error_rate"]["saved"] or 0.0)
    figures = passport.content["pool"]
    rows = [_build_estimate(key, figures[key]) for key in _NAMES if figures[key]["human"] is not None]
    return PoolEstimates(passport, rows, _build_table(figures))


def _build_estimate(key: str, row: dict[str, Any]) -> PoolEstimate:
    return PoolEstimate(
        key=key,
        name=str(_NAMES[key]),
        human=ValueWithInterval(row["human"], row["human_low"], row["human_high"]),
        powered=ValueWithInterval(row["value"], row["low"], row["high"]),
        saved="–" if row["saved"] is None else number_format.format_percent(row["saved"]),
        n_labeled=row["n_labeled"],
        n_pool=row["n_pool"],
        why=explain_missing_value(row["reason"]),
    )


def _build_table(figures: dict[str, Any]) -> DataTable:
    columns = [
        TableColumn(_("Figure")),
        *number_columns(_("people alone"), _("from"), _("to"), reads=format_share),
        *number_columns(_("with the machine"), _("from"), _("to"), reads=format_share),
        *number_columns(_("labeled by people"), _("traces")),
    ]
    fields = ("human", "human_low", "human_high", "value", "low", "high", "n_labeled", "n_pool")
    rows = [(str(name), *(figures[key][field] for field in fields)) for key, name in _NAMES.items()]
    return DataTable("pool", _("Estimates for all traces"), columns, rows)
