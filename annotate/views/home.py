"""The home page."""

import datetime as dt
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.models import User
from accounts.sessions import UserRequest
from annotate import history, todo, work_summary
from labeling import assignments, queue
from labeling.models import Assignment
from labeling.models.project import ProjectState
from people import members, roles
from people.models import MemberMessage
from people.roles import Action
from prm import arena

LATEST_SUBMISSIONS = 6


@require_safe
def show_home(request: UserRequest) -> HttpResponse:
    user, now = request.user, timezone.now()
    todos = todo.list_todos(user)
    archived = roles.visible_projects(user, Action.READ).filter(state=ProjectState.ARCHIVED)
    context = {
        "work": [each for each in todos if each.rater],
        "managed": sorted(todo.list_managed_projects(todos), key=lambda each: each.project.name),
        "archived": archived.only("slug", "name").order_by("name")[:50],
        "may_create_projects": roles.may_create_projects(user),
        "now": now,
        "messages_to_me": MemberMessage.objects.unread_by(user)[:20],
    }
    if context["work"]:
        context |= _rater_context(user, now)
    return render(request, "annotate/home.html", context)


def _rater_context(user: User, now: dt.datetime) -> dict[str, Any]:
    opened = todo.list_opened_traces(user, now)
    return {
        "arenas": arena.list_open_projects(roles.visible_projects(user), user),
        "opened_traces": opened,
        "opened_projects": {each.assignment.project_id for each in opened},
        "reclaimed": todo.list_reclaimed(user),
        "correction_requests": assignments.open_correction_requests(user=user)[:20],
        "today": work_summary.summarize_today(user, now),
        "month": work_summary.summarize_month(user, now),
        "weeks": work_summary.summarize_weekly_gold(user, now),
        "latest": history.load_page(user, now=now, size=LATEST_SUBMISSIONS),
    }


@require_POST
def begin_rating(request: UserRequest, slug: str) -> HttpResponse:
    project = get_object_or_404(roles.visible_projects(request.user), slug=slug)
    members.begin_rating(project=project, by=request.user, now=timezone.now())
    return redirect("annotate:home")


@require_POST
def leave_as_is(request: UserRequest, assignment: int) -> HttpResponse:
    """Decline a correction request: the submission stays unchanged."""
    row = get_object_or_404(Assignment, pk=assignment, rater__user=request.user)
    assignments.decline_correction(assignment_id=row.pk, rater_id=row.rater_id, by=request.user, now=timezone.now())
    return redirect("annotate:home")


@require_POST
def acknowledge_reclaim(request: UserRequest, assignment: int) -> HttpResponse:
    """Dismiss the notice that a trace was reclaimed."""
    row = get_object_or_404(Assignment, pk=assignment, rater__user=request.user)
    queue.acknowledge_reclaim(assignment_id=row.pk, rater_id=row.rater_id, now=timezone.now(), by=request.user)
    return redirect("annotate:home")
