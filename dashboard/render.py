"""Render one page of a project with the navigation, or one of its tables as CSV."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import get_script_prefix, reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts import confirmation
from dashboard import rater_names
from dashboard.figures import DataTable
from events import audit_log
from labeling.models.project import Protocol
from people import roles
from people.models import Membership, Role
from people.roles import Action


class NavigationLink(NamedTuple):
    """One link. A page names its link by `key`, which is also the name of its URL."""

    key: str
    label: Any  # a lazy translation
    action: Action


NAVIGATION = (
    (
        _("Project"),
        (
            NavigationLink("overview", _("Overview"), Action.READ),
            NavigationLink("traces", _("Traces"), Action.READ),
            NavigationLink("agreement", _("Agreement"), Action.READ),
            NavigationLink("adjudication", _("Adjudication"), Action.ADJUDICATE),
            NavigationLink("gold", _("Gold"), Action.MAKE_GOLD),
        ),
    ),
    (
        _("People"),
        (
            NavigationLink("annotators", _("Annotators"), Action.READ_QUALITY),
            NavigationLink("messages", _("Messages"), Action.WRITE),
            NavigationLink("members", _("Members"), Action.INVITE),
            NavigationLink("groups", _("Groups"), Action.PAUSE),
            NavigationLink("pay", _("Pay"), Action.PAUSE),
        ),
    ),
    (
        _("Data and models"),
        (
            NavigationLink("imports", _("Imports"), Action.BRING_IN),
            NavigationLink("generations", _("Generations"), Action.READ),
            NavigationLink("judges", _("Judges"), Action.READ),
            NavigationLink("live", _("Live labeling"), Action.READ),
            NavigationLink("snapshots", _("Snapshots"), Action.TAKE_OUT),
        ),
    ),
    (
        "",
        (
            NavigationLink("settings", _("Settings"), Action.READ_SETTINGS),
            NavigationLink("jobs", _("Jobs"), Action.READ),
            NavigationLink("audit", _("Audit log"), Action.AUDIT),
        ),
    ),
)


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
    """Render a template with the navigation that this member's role may open. `here` is the key of its navigation item.

    Templates find the actions that the role permits in `may`: `{% if "pause" in may %}`.
    With `?csv=<key>` the response is that table of `tables` as a file.
    """
    key = request.GET.get("csv")
    if key is not None:
        table = next((table for table in tables if table.key == key), None)
        if table is None:
            raise Http404
        return csv_response(request, actor, table)
    addresses = _reverse_navigation(get_script_prefix(), actor.project.slug)
    groups = [
        (label, allowed)
        for label, links in NAVIGATION
        if (allowed := [(link, addresses[link.key]) for link in links if _is_shown(link, actor)])
    ]
    frame = {
        "actor": actor,
        "project": actor.project,
        "here": here,
        "groups": groups,
        "may": roles.ROLE_ACTIONS[Role(actor.role)],
    }
    return render(request, template, frame | context, status=status)


@lru_cache(maxsize=1000)  # projects; each page shows all addresses
def _reverse_navigation(_prefix: str, slug: str) -> Mapping[str, str]:
    keys = [link.key for _label, links in NAVIGATION for link in links]
    return {key: reverse(f"dashboard:{key}", args=[slug]) for key in keys}


def _is_shown(link: NavigationLink, actor: Membership) -> bool:
    is_for_project = link.key != "live" or actor.project.protocol == Protocol.LIVE
    return is_for_project and roles.membership_may(actor, link.action)


def csv_response(request: HttpRequest, actor: Membership, table: DataTable) -> HttpResponse:
    """Return a table of a project as a file, and log who downloaded it. Ask for a confirmation first."""
    if confirmation.must_confirm(request):
        return confirmation.suspend_download(request)
    name = f"{actor.project.slug}-{table.key}.csv"
    has_names = rater_names.can_see_names(actor)
    audit_log.log_download(
        file=name,
        by=actor.user,
        now=timezone.now(),
        project=actor.project_id,
        has_names=has_names,
        n_rows=len(table.rows),
    )
    disposition = f'attachment; filename="{name}"'
    return HttpResponse(
        table.as_csv(), content_type="text/csv; charset=utf-8", headers={"Content-Disposition": disposition}
    )
