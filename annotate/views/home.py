"""The page that everybody begins at."""

import datetime as dt
from typing import Any, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.models import User
from annotate import history, managed_projects, reclaim_notices, todo, work_summary
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
    mine = todo.list_todos(user)
    told = {
        "work": [each for each in mine if each.is_work],
        "managed": sorted(managed_projects.list_managed_projects(mine), key=lambda each: each.project.name),
        "archived": roles.visible_projects(user, Action.READ).filter(state=ProjectState.ARCHIVED).order_by("name")[:50],
        "may_create_projects": roles.may_create_projects(user),
        "now": now,
        "messages_to_me": MemberMessage.objects.unread_by(user)[:20],
    }
    if told["work"]:
        told |= _rater_context(user, now)
    return render(request, "annotate/home.html", told)


def _rater_context(user: User, now: dt.datetime) -> dict[str, Any]:
    opened, today = todo.find_opened_assignment(user, now), work_summary.summarize_today(user, now)
    return {
        "opened": opened,
        "ended": reclaim_notices.list_reclaimed(user),
        "marks": todo.list_step_marks(opened) if opened else (),
        "asked": assignments.open_correction_requests(user=user)[:20],
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
    """Somebody asked this person to look at a submission again, who has, and it stands."""
    mine = get_object_or_404(Assignment, pk=assignment, rater__user=cast(User, request.user))
    assignments.decline_correction(
        assignment_id=mine.pk, rater_id=mine.rater_id, by=cast(User, request.user), now=timezone.now()
    )
    return redirect("annotate:home")


@require_POST
def acknowledge_reclaim(request: HttpRequest, assignment: int) -> HttpResponse:
    """Somebody has read that a trace went back which they had open."""
    user = cast(User, request.user)
    mine = get_object_or_404(Assignment, pk=assignment, rater__user=user)
    queue.acknowledge_reclaim(assignment_id=mine.pk, rater_id=mine.rater_id, now=timezone.now(), by=user)
    return redirect("annotate:home")
