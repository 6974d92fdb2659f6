"""Shows one page of a project: the frame around it, and its tables as files when they are asked for.

A view hands over a template and what it read: `page.show(request, actor, "dashboard/jobs.html", here="jobs", ...)`.
Each table among `tables` can be fetched from the same address with `?csv=<its key>`.
"""

from collections.abc import Sequence
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard import navigation
from dashboard.tables import DataTable
from people.models import Membership


def project_page(
    request: HttpRequest,
    actor: Membership,
    template: str,
    *,
    here: str,
    status: int = 200,
    tables: Sequence[DataTable] = (),
    **told: Any,
) -> HttpResponse:
    wanted = request.GET.get("csv")
    if wanted is not None:
        return _csv_response(actor, wanted, tables)
    frame = {
        "actor": actor,
        "project": actor.project,
        "here": here,
        "groups": list(navigation.list_visible_groups(actor)),
    }
    return render(request, template, {**frame, **told}, status=status)


def _csv_response(actor: Membership, wanted: str, tables: Sequence[DataTable]) -> HttpResponse:
    found = next((table for table in tables if table.key == wanted), None)
    if found is None:
        raise Http404
    answer = HttpResponse(found.as_csv(), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{actor.project.slug}-{found.key}.csv"'
    return answer
