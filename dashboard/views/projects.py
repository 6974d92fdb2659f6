"""Making a project."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.models import User
from dashboard.forms import NewProjectForm
from people import projects, roles


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    if not roles.may_create_projects(user):
        raise roles.NotAllowed(_("Projects are made by the operator of this platform and by owners of projects."))
    form = NewProjectForm(request.POST or None)
    if not form.is_valid():
        status = 422 if form.is_bound else 200
        return render(request, "dashboard/new_project.html", {"form": form}, status=status)
    chosen = dict(form.cleaned_data)
    chosen["overlap_limit"] = max(5, chosen["overlap"])
    project = projects.create(**chosen, by=user, now=timezone.now())
    messages.success(request, _("“%(project)s” is made. Invite people to it here.") % {"project": project.name})
    return redirect("dashboard:people", project.slug)
