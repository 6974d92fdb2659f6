"""The arena of a project: open and close it, see which edits fooled a PRM, and download the hard negatives."""

import json
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.confirmation import require_confirmation
from charts.number_format import format_share
from dashboard import rater_names
from dashboard.access import membership_or_404, post_view, safe_view
from dashboard.figures import DataTable, TableColumn, number_columns
from dashboard.render import project_page
from events import audit_log
from people import roles
from people.models import Membership
from people.roles import Action
from prm import arena
from prm.arena import ArenaRefused
from prm.models import Arena, ArenaEdit
from prm.models.arena import ArenaEditState

_MAX_EDITS = 100


@dataclass(frozen=True)
class ShownEdit:
    edit: ArenaEdit
    author: str
    n_wrong: int
    n_checks: int


@safe_view(Action.READ_QUALITY)
def show_arena(request: HttpRequest, actor: Membership) -> HttpResponse:
    return _render_arena(request, actor)


@post_view(Action.TRAIN)
def open_arena(request: HttpRequest, actor: Membership) -> HttpResponse:
    try:
        arena.open_arena(project=actor.project, by=actor.user, now=timezone.now())
    except ArenaRefused as refused:
        return _render_arena(request, actor, status=422, problem=str(refused))
    messages.success(request, _("Arena opened. Annotators find it on their home page."))
    return redirect("dashboard:arena", actor.project.slug)


@post_view(Action.TRAIN)
def close_arena(request: HttpRequest, actor: Membership) -> HttpResponse:
    arena.close_arena(project=actor.project, by=actor.user, now=timezone.now())
    messages.success(request, _("Arena closed."))
    return redirect("dashboard:arena", actor.project.slug)


@require_confirmation(is_download=True)
@require_safe
@never_cache
def download_hard_negatives(request: HttpRequest, slug: str) -> HttpResponse:
    """Download the confirmed edits as JSON lines in ProcessBench's format."""
    actor = membership_or_404(request, slug, Action.TAKE_OUT)
    rows = list(arena.export_hard_negatives(actor.project_id))
    name = f"{slug}-hard-negatives.jsonl"
    audit_log.log_download(file=name, by=actor.user, now=timezone.now(), project=actor.project_id, n_rows=len(rows))
    return HttpResponse(
        "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows),
        content_type="application/x-ndjson; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _render_arena(request: HttpRequest, actor: Membership, *, status: int = 200, problem: str = "") -> HttpResponse:
    edits = list(arena.list_edits(actor.project_id)[:_MAX_EDITS])
    authors = {each.rater_id: each.rater for each in edits}
    names = rater_names.get_distinct_names(list(authors.values()), actor)
    checks = arena.count_checks([each.pk for each in edits])
    counts = arena.count_edits(actor.project_id)
    return project_page(
        request,
        actor,
        "dashboard/arena.html",
        here="generations",
        status=status,
        problem=problem,
        arena=Arena.objects.filter(project=actor.project).first(),
        counts=[(state.value, state.label, counts[state.value]) for state in ArenaEditState],
        edits=[ShownEdit(each, names[each.rater_id], *checks.get(each.pk, (0, 0))) for each in edits],
        checkers=_build_checkers(actor),
        may_train=roles.membership_may(actor, Action.TRAIN),
        may_download=counts[ArenaEditState.CONFIRMED] and roles.membership_may(actor, Action.TAKE_OUT),
    )


def _build_checkers(actor: Membership) -> DataTable:
    rows = arena.list_checkers(actor.project_id)
    names = rater_names.get_distinct_names([row.rater for row in rows], actor)
    columns = [
        TableColumn(_("Annotator")),
        *number_columns(_("steps checked"), _("of them controls")),
        *number_columns(_("controls correct"), reads=format_share),
    ]
    cells = [
        (names[row.rater.pk], row.n_checks, row.n_controls, row.n_right / row.n_controls if row.n_controls else None)
        for row in rows
    ]
    return DataTable("checkers", _("Checks by annotator"), columns, cells)
