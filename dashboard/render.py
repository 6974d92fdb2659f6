"""Render one page of a project, or one of its tables as CSV."""

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
    **context: Any,
) -> HttpResponse:
    """Render a template with the navigation. `here` is the key of its navigation item.

    With `?csv=<key>` the response is that table of `tables` as a file.
    """
    key = request.GET.get("csv")
    if key is not None:
        return _csv_response(actor, key, tables)
    frame = {
        "actor": actor,
        "project": actor.project,
        "here": here,
        "groups": list(navigation.list_visible_groups(actor)),
    }
    return render(request, template, {**frame, **context}, status=status)


def _csv_response(actor: Membership, key: str, tables: Sequence[DataTable]) -> HttpResponse:
    table = next((table for table in tables if table.key == key), None)
    if table is None:
        raise Http404
    disposition = f'attachment; filename="{actor.project.slug}-{key}.csv"'
    return HttpResponse(
        table.as_csv(), content_type="text/csv; charset=utf-8", headers={"Content-Disposition": disposition}
    )
