"""The page that everybody begins at."""

from typing import cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.models import User
from annotate import history, todo
from labeling import judging
from labeling.models import Assignment
from people import members, roles
from people.models import Message

LATEST = 6


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    user, now = cast(User, request.user), timezone.now()
    mine = todo.of(user)
    is_rater = any(each.is_work for each in mine)
    since = timezone.localtime(now).replace(hour=0, minute=0, second=0, microsecond=0)
    told = {
        "work": [each for each in mine if each.is_work],
        "managed": [each for each in mine if not each.is_work or each.may_read],
        "opened": todo.opened(user, now) if is_rater else None,
        "asked": judging.open_requests(user=user)[:20] if is_rater else (),
        "today": todo.today(user, since) if is_rater else None,
        "messages_to_me": Message.objects.unread_by(user)[:20],
        "weeks": todo.weeks(user, now) if is_rater else [],
        "latest": history.page(user, now=now, size=LATEST) if is_rater else None,
        "now": now,
        "most": todo.COUNTED,
        "may_create_projects": roles.may_create_projects(user),
    }
    return render(request, "annotate/home.html", told)


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
