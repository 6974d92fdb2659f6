"""The page that everybody begins at."""

import datetime as dt
from typing import Any, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.models import User
from annotate import bars, days, ended, history, managed, todo
from labeling import judging, queue
from labeling.models import Assignment
from labeling.models.project import ProjectState
from people import members, roles
from people.models import Message
from people.roles import Action

LATEST = 6


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    user, now = cast(User, request.user), timezone.now()
    mine = todo.of(user)
    told = {
        "work": [each for each in mine if each.is_work],
        "managed": sorted(managed.of(mine), key=lambda each: each.project.name),
        "archived": roles.projects(user, Action.READ).filter(state=ProjectState.ARCHIVED).order_by("name")[:50],
        "may_create_projects": roles.may_create_projects(user),
        "now": now,
        "messages_to_me": Message.objects.unread_by(user)[:20],
    }
    if told["work"]:
        told |= _of_a_rater(user, now)
    return render(request, "annotate/home.html", told)


def _of_a_rater(user: User, now: dt.datetime) -> dict[str, Any]:
    opened, today = todo.opened(user, now), days.today(user, now)
    return {
        "opened": opened,
        "ended": ended.of(user),
        "marks": todo.marks(opened) if opened else (),
        "asked": judging.open_requests(user=user)[:20],
        "today": today,
        "bars": bars.of(today.hours),
        "month": days.month(user, now),
        "weeks": days.weeks(user, now),
        "latest": history.page(user, now=now, size=LATEST),
    }


@require_POST
def begin_rating(request: HttpRequest, slug: str) -> HttpResponse:
    user = cast(User, request.user)
    project = get_object_or_404(roles.projects(user), slug=slug)
    members.begin_rating(project=project, by=user, now=timezone.now())
    return redirect("annotate:home")


@require_POST
def leave_as_is(request: HttpRequest, assignment: int) -> HttpResponse:
    """Somebody asked this person to look at a submission again, who has, and it stands."""
    mine = get_object_or_404(Assignment, pk=assignment, rater__user=cast(User, request.user))
    judging.leave_as_is(assignment_id=mine.pk, rater_id=mine.rater_id, by=cast(User, request.user), now=timezone.now())
    return redirect("annotate:home")


@require_POST
def know_end(request: HttpRequest, assignment: int) -> HttpResponse:
    """Somebody has read that a trace went back which they had open."""
    user = cast(User, request.user)
    mine = get_object_or_404(Assignment, pk=assignment, rater__user=user)
    queue.say_known(assignment_id=mine.pk, rater_id=mine.rater_id, now=timezone.now(), by=user)
    return redirect("annotate:home")
