"""The clauses page: how raters cite the clauses of the guideline, and what changed between its versions."""

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from charts import number_format
from dashboard import statistics
from dashboard.access import safe_view
from dashboard.figures import DataTable, TableColumn, number_columns
from dashboard.render import project_page
from labeling.quality import clause_report
from labeling.quality.clause_report import ClauseFigures, VersionDrift
from people.models import Membership
from people.roles import Action


@safe_view(Action.READ)
def show_clauses(request: HttpRequest, actor: Membership) -> HttpResponse:
    report = clause_report.build_clause_report(actor.project)
    contested = _build_clause_table("contested", _("most contested clauses"), report.most_contested)
    every_clause = _build_clause_table("clauses", _("citations by clause"), report.clauses)
    versions = _build_version_table(report.versions)
    return project_page(
        request,
        actor,
        "dashboard/clauses.html",
        here="agreement",
        tables=[contested, every_clause, versions],
        report=report,
        agreement=statistics.build_estimate("clause", report.agreement),
        contested=contested,
        every_clause=every_clause,
        versions=versions,
    )


def _build_clause_table(key: str, name: str, rows: Sequence[ClauseFigures]) -> DataTable:
    columns = (
        TableColumn(_("Clause")),
        TableColumn(_("Title")),
        *number_columns(_("negative ratings"), _("other ratings"), _("shared steps"), _("contested"), _("opposed")),
        *number_columns(_("contested share"), reads=number_format.format_share),
    )
    cells = [
        (
            *(each.clause.code, each.clause.title, each.n_negative, each.n_other, each.n_shared),
            *(each.n_contested, each.n_opposed, each.contested_share),
        )
        for each in rows
    ]
    return DataTable(key, name, columns, cells)


def _build_version_table(versions: Sequence[VersionDrift]) -> DataTable:
    columns = (
        TableColumn(_("Version")),
        *number_columns(_("clauses"), _("ratings")),
        *(TableColumn(name) for name in (_("added"), _("removed"), _("changed text"), _("new number"))),
        *number_columns(_("change in use"), reads=number_format.format_share),
    )
    cells = [
        (
            *(each.version, each.n_clauses, each.n_ratings),
            *(", ".join(codes) for codes in (each.added, each.removed, each.changed, each.renumbered)),
            each.distance,
        )
        for each in versions
    ]
    return DataTable("clause-versions", _("clauses by version of the guideline"), columns, cells)
