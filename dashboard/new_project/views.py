"""Making a project."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.models import User
from dashboard.forms import NewProjectForm, build_slug_taken_error
from labeling.models import Project
from labeling.projects.lifecycle import ProjectSlugTaken
from people import owned_projects, roles


@require_http_methods(["GET", "HEAD", "POST"])
def create_new_project(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    if not roles.may_create_projects(user):
        raise roles.NotAllowed(_("Projects are made by the operator of this platform and by owners of projects."))
    form = NewProjectForm(request.POST or None)
    project = _try_create(form, user) if form.is_valid() else None
    if project is None:
        status = 422 if form.is_bound else 200
        return render(request, "dashboard/new_project.html", {"form": form}, status=status)
    messages.success(request, _("“%(project)s” is made. Invite people to it here.") % {"project": project.name})
    return redirect("dashboard:members", project.slug)


def _try_create(form: NewProjectForm, user: User) -> Project | None:
    """None where the address was taken since the form was checked: by a second click, as a rule."""
    chosen = dict(form.cleaned_data)
    chosen["overlap_limit"] = max(5, chosen["overlap"])
    try:
        return owned_projects.create_owned_project(**chosen, by=user, now=timezone.now())
    except ProjectSlugTaken:
        form.add_error("slug", build_slug_taken_error(chosen["slug"]))
        return None
