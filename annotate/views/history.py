"""What a person has submitted, and the way to correct it."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.models import User
from annotate import asked, history
from labeling import judging
from labeling.models import Assignment
from labeling.texts import numbers


@require_safe
def submitted(request: HttpRequest) -> HttpResponse:
    key = numbers.whole(request.GET.get("before"))
    page = history.page(cast(User, request.user), now=timezone.now(), before=key)
    return render(request, "annotate/history.html", {"page": page, "is_first": key is None})


@require_safe
def submitted_one(request: HttpRequest, assignment: int) -> HttpResponse:
    found = _mine(request, assignment)
    told = {
        "done": history.one(found, timezone.now()),
        "lines": history.lines(found),
        "project": found.project,
        "asked": asked.of(found.pk, cast(User, request.user)),
    }
    return render(request, "annotate/submitted.html", told)


@require_POST
def correct(request: HttpRequest, assignment: int) -> HttpResponse:
    found = _mine(request, assignment)
    try:
        judging.reopen(assignment_id=found.pk, rater_id=found.rater_id, now=timezone.now(), by=cast(User, request.user))
    except judging.CannotReopen as refusal:
        messages.warning(request, str(refusal))
        return redirect("annotate:submitted_one", found.pk)
    return redirect(f"{reverse('annotate:work', args=[found.project.slug])}?assignment={found.pk}")


def _mine(request: HttpRequest, assignment: int) -> Assignment:
    rows = history.mine(cast(User, request.user)).filter(submitted_revision__gte=1)
    return get_object_or_404(rows.select_related("trace__problem", "project", "rater"), pk=assignment)
