"""The home page."""

import datetime as dt
from typing import Any, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.models import User
from annotate import history, managed_projects, notices, todo, work_summary
from charts import hour_columns
from labeling import assignments, queue
from labeling.models import Assignment
from labeling.models.project import ProjectState
from people import members, roles
from people.models import MemberMessage
from people.roles import Action

LATEST_SUBMISSIONS = 6


@require_safe
def show_home(request: HttpRequest) -> HttpResponse:
    user, now = cast(User, request.user), timezone.now()
    todos = todo.list_todos(user)
    context = {
        "work": [each for each in todos if each.is_work],
        "managed": sorted(managed_projects.list_managed_projects(todos), key=lambda each: each.project.name),
        "archived": roles.visible_projects(user, Action.READ).filter(state=ProjectState.ARCHIVED).order_by("name")[:50],
        "may_create_projects": roles.may_create_projects(user),
        "now": now,
        "messages_to_me": MemberMessage.objects.unread_by(user)[:20],
    }
    if context["work"]:
        context |= _rater_context(user, now)
    return render(request, "annotate/home.html", context)


def _rater_context(user: User, now: dt.datetime) -> dict[str, Any]:
    opened, today = todo.find_opened_assignment(user, now), work_summary.summarize_today(user, now)
    return {
        "opened": opened,
        "reclaimed": notices.list_reclaimed(user),
        "marks": todo.list_step_marks(opened) if opened else (),
        "correction_requests": assignments.open_correction_requests(user=user)[:20],
        "today": today,
        "bars": hour_columns.layout_bars(today.hours),
        "month": work_summary.summarize_month(user, now),
        "weeks": work_summary.summarize_weekly_gold(user, now),
        "latest": history.load_page(user, now=now, size=LATEST_SUBMISSIONS),
    }


@require_POST
def begin_rating(request: HttpRequest, slug: str) -> HttpResponse:
    user = cast(User, request.user)
    project = get_object_or_404(roles.visible_projects(user), slug=slug)
    members.begin_rating(project=project, by=user, now=timezone.now())
    return redirect("annotate:home")


@require_POST
def leave_as_is(request: HttpRequest, assignment: int) -> HttpResponse:
    """Decline a correction request: the submission stays unchanged."""
    row = get_object_or_404(Assignment, pk=assignment, rater__user=cast(User, request.user))
    assignments.decline_correction(
        assignment_id=row.pk, rater_id=row.rater_id, by=cast(User, request.user), now=timezone.now()
    )
    return redirect("annotate:home")


@require_POST
def acknowledge_reclaim(request: HttpRequest, assignment: int) -> HttpResponse:
    """Dismiss the notice that a trace was reclaimed."""
    user = cast(User, request.user)
    row = get_object_or_404(Assignment, pk=assignment, rater__user=user)
    queue.acknowledge_reclaim(assignment_id=row.pk, rater_id=row.rater_id, now=timezone.now(), by=user)
    return redirect("annotate:home")
