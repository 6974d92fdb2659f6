"""Create a project."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.models import User
from dashboard.new_project.forms import NewProjectForm
from dashboard.project_slugs import build_slug_taken_error
from labeling.models import Project
from labeling.projects.lifecycle import ProjectSlugTaken
from people import owned_projects, roles


@require_http_methods(["GET", "HEAD", "POST"])
def create_new_project(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    if not roles.may_create_projects(user):
        raise roles.NotAllowed(_("Only the operator and project owners can create projects."))
    form = NewProjectForm(request.POST or None)
    project = _try_create(form, user) if form.is_valid() else None
    if project is None:
        status = 422 if form.is_bound else 200
        return render(request, "dashboard/new_project.html", {"form": form}, status=status)
    messages.success(request, _("Project “%(project)s” created. Invite its members here.") % {"project": project.name})
    return redirect("dashboard:members", project.slug)


def _try_create(form: NewProjectForm, user: User) -> Project | None:
    """Create the project. Returns None if another request took its slug after the form was checked."""
    options = dict(form.cleaned_data)
    options["overlap_limit"] = max(5, options["overlap"])
    try:
        return owned_projects.create_owned_project(**options, by=user, now=timezone.now())
    except ProjectSlugTaken:
        form.add_error("slug", build_slug_taken_error(options["slug"]))
        return None
