"""The lifecycle of a project: create, clone, pause, resume, close and archive it."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST

from accounts.models import User
from dashboard.access import membership_or_404, post_view, safe_view
from dashboard.render import project_page
from labeling import overlap_change
from labeling.models import Project
from labeling.models.project import EVERY_STEP_PROTOCOLS, ProjectState, Protocol
from labeling.projects import lifecycle, rating_rules
from people import members, roles
from people.models import Membership
from people.roles import Action

_STATE_CHANGES = {
    "pause": (Action.PAUSE, ProjectState.PAUSED),
    "resume": (Action.PAUSE, ProjectState.OPEN),
    "close": (Action.CLOSE, ProjectState.CLOSED),
    "archive": (Action.CLOSE, ProjectState.ARCHIVED),
}


class CloneProjectForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=200)
    slug = forms.SlugField(
        label=_("URL name"),
        max_length=80,
        help_text=_("Part of every link: lowercase letters, digits and hyphens. It cannot be changed later."),
    )

    def clean_slug(self) -> str:
        slug: str = self.cleaned_data["slug"].lower()
        if slug == "new" or Project.objects.filter(slug=slug).exists():
            raise _slug_taken(slug)
        return slug


class NewProjectForm(CloneProjectForm):
    protocol = forms.ChoiceField(
        label=_("Labeling protocol"),
        choices=[(each.value, each.label) for each in (Protocol.FIRST_ERROR, *EVERY_STEP_PROTOCOLS)],
    )
    overlap = forms.IntegerField(
        label=_("Labels per trace"),
        min_value=1,
        max_value=20,
        initial=2,
        help_text=_("Choose two or more to measure agreement between annotators."),
    )

    rules = forms.ChoiceField(
        label=_("Kind of traces"),
        choices=[
            ("", _("Choose based on the first imported traces")),
            *((name, template.name) for name, template in rating_rules.RULES_TEMPLATES.items()),
        ],
        required=False,
        help_text=_(
            "Determines which short rules and kinds of errors the project starts with. You can change them in"
            " the settings."
        ),
    )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        chosen = data.pop("rules", "")
        rules = rating_rules.copy_template(chosen) if chosen else {}
        return {**data, "overlap_limit": max(5, data.get("overlap", 0)), "rating_rules": rules}


@require_http_methods(["GET", "HEAD", "POST"])
def create_new_project(request: HttpRequest) -> HttpResponse:
    form = NewProjectForm(request.POST or None)
    project = _create_project(form, cast(User, request.user), members.create_owned_project)
    if project is None:
        status = 422 if form.is_bound else 200
        return render(request, "dashboard/new_project.html", {"form": form}, status=status)
    messages.success(request, _("Project “%(project)s” created. Invite its members here.") % {"project": project.name})
    return redirect("dashboard:members", project.slug)


@post_view(Action.GUIDE)
def create_project_clone(request: HttpRequest, actor: Membership) -> HttpResponse:
    form = CloneProjectForm(request.POST)
    clone = _create_project(form, actor.user, partial(members.clone_owned_project, project=actor.project))
    if clone is None:
        return _render_lifecycle(request, actor, status=422, clone_form=form)
    messages.success(request, _("Project “%(project)s” created.") % {"project": clone.name})
    return redirect("dashboard:settings", clone.slug)


@require_POST
def change_project_state(request: HttpRequest, slug: str, verb: str) -> HttpResponse:
    """Pause, resume, close or archive the project."""
    action, to = _STATE_CHANGES[verb]
    actor = membership_or_404(request, slug, action)
    try:
        lifecycle.change_project_state(project=actor.project, to=to, by=actor.user, now=timezone.now())
    except lifecycle.ProjectTransitionRefused:
        messages.warning(
            request, _("Nothing was changed: someone else has changed the project’s state. Reload the page.")
        )
    else:
        state = ProjectState(actor.project.state).label
        messages.success(request, _("The project is now %(state)s.") % {"state": state})
    return redirect("dashboard:lifecycle", slug)


@safe_view(Action.PAUSE)
def show_lifecycle(request: HttpRequest, actor: Membership) -> HttpResponse:
    return _render_lifecycle(request, actor)


def _create_project(form: CloneProjectForm, user: User, create: Callable[..., Project]) -> Project | None:
    """Create the project. Returns None if the form is invalid, or if another request has just taken the slug."""
    if not roles.may_create_projects(user):
        raise roles.NotAllowed(_("Only the operator and project owners can create projects."))
    if not form.is_valid():
        return None
    try:
        return create(by=user, now=timezone.now(), **form.cleaned_data)
    except lifecycle.ProjectSlugTaken:
        form.add_error("slug", _slug_taken(form.cleaned_data["slug"]))
        return None


def _slug_taken(slug: str) -> ValidationError:
    message = _("The URL name “%(slug)s” is taken. Choose another one.")
    return ValidationError(message, code="taken", params={"slug": slug})


def _render_lifecycle(request: HttpRequest, actor: Membership, *, status: int = 200, **context: Any) -> HttpResponse:
    context.setdefault(
        "clone_form", CloneProjectForm(initial={"name": f"{actor.project.name} (2)", "slug": f"{actor.project.slug}-2"})
    )
    return project_page(
        request,
        actor,
        "dashboard/lifecycle.html",
        here="settings",
        tab="lifecycle",
        status=status,
        under_way=overlap_change.measure_overlap_impact(project_id=actor.project.pk),
        may_close=roles.membership_may(actor, Action.CLOSE),
        may_clone=roles.may_create_projects(actor.user),
        **context,
    )
