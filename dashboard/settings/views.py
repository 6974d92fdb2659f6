"""Settings of a project: general settings, overlap, guideline and consent, lifecycle."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.access import membership_or_404
from dashboard.project_slugs import build_slug_taken_error
from dashboard.render import project_page
from dashboard.settings.forms import CloneProjectForm, ConsentForm, GuidelineForm, OverlapForm, SettingsForm
from labeling import overlap_change
from labeling.models import Guideline
from labeling.models.project import ProjectState
from labeling.projects import guidelines, lifecycle
from labeling.projects.guidelines import rendering
from people import owned_projects, roles
from people.models import Membership
from people.roles import Action


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def edit_settings(request: HttpRequest, slug: str) -> HttpResponse:
    actor = membership_or_404(request, slug, Action.GUIDE)
    if request.method != "POST":
        return _render_settings(request, actor)
    form = SettingsForm.for_project(actor.project, request.POST)
    if not form.is_valid():
        return _render_settings(request, actor, status=422, form=form)
    try:
        lifecycle.change_settings(project=actor.project, by=actor.user, now=timezone.now(), **form.changed())
    except lifecycle.SettingNotChangeable as error:
        return _render_settings(request, actor, status=422, form=form, problem=str(error))
    messages.success(request, _("Saved. Traces already open keep their previous settings."))
    return redirect("dashboard:settings", slug)


@require_POST
@never_cache
def edit_overlap(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the effect on open work; apply the change after it is confirmed."""
    actor = membership_or_404(request, slug, Action.GUIDE)
    form = OverlapForm(request.POST, initial=OverlapForm.get_initial_values(actor.project))
    if not form.is_valid():
        return _render_settings(request, actor, status=422, overlap_form=form)
    if not form.has_changed():
        return redirect("dashboard:settings", slug)
    if "confirmed" not in request.POST:
        under_way = overlap_change.measure_overlap_impact(project_id=actor.project.pk)
        before = OverlapForm.get_initial_values(actor.project)
        template = "dashboard/confirm_overlap.html"
        return project_page(request, actor, template, here="settings", form=form, under_way=under_way, before=before)
    _change_overlap(actor, form.cleaned_data)
    messages.success(request, _("Saved. Unsettled traces are updated in the background; see Jobs."))
    return redirect("dashboard:settings", slug)


def _change_overlap(actor: Membership, options: dict[str, int]) -> None:
    overlap_change.change_overlap(
        project=actor.project,
        overlap=options["overlap"],
        overlap_limit=options["overlap_limit"],
        lease_seconds=options["lease_minutes"] * 60,
        by=actor.user,
        now=timezone.now(),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def edit_guideline(request: HttpRequest, slug: str) -> HttpResponse:
    """Edit, preview and publish the next version of the guideline."""
    actor = membership_or_404(request, slug, Action.GUIDE)
    if request.method != "POST":
        return _render_guideline_editor(
            request, actor, GuidelineForm(initial={"body": _get_initial_body(actor, request.GET.get("template"))})
        )
    form = GuidelineForm(request.POST)
    if not form.is_valid():
        return _render_guideline_editor(request, actor, form, status=422)
    if "preview" in request.POST:
        return _render_guideline_editor(request, actor, form, preview=rendering.to_html(form.cleaned_data["body"]))
    guideline = lifecycle.publish_guideline(
        project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data
    )
    messages.success(
        request, _("Version %(n)d published. Annotators read it before their next trace.") % {"n": guideline.version}
    )
    return redirect("dashboard:guideline", slug)


def _get_initial_body(actor: Membership, template: str | None) -> str:
    """Return the current version, or a bundled template."""
    if template in guidelines.TEMPLATES:
        return guidelines.load_guideline_template(str(template))
    return actor.project.guideline.body if actor.project.guideline else ""


@require_POST
def save_consent_text(request: HttpRequest, slug: str) -> HttpResponse:
    actor = membership_or_404(request, slug, Action.GUIDE)
    form = ConsentForm(request.POST)
    if not form.is_valid():
        return _render_guideline_editor(request, actor, GuidelineForm(), status=422, consent_form=form)
    lifecycle.publish_consent_text(project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data)
    messages.success(request, _("Consent text published. Annotators are asked before their next trace."))
    return redirect("dashboard:guideline", slug)


@require_safe
@never_cache
def show_guideline_version(request: HttpRequest, slug: str, version: int) -> HttpResponse:
    actor = membership_or_404(request, slug, Action.READ)
    guideline = get_object_or_404(Guideline, project=actor.project, version=version)
    html = rendering.to_html(guideline.body)
    return project_page(
        request, actor, "dashboard/guideline_version.html", here="settings", version=guideline, html=html
    )


_STATE_CHANGES = {
    "pause": lifecycle.pause_project,
    "resume": lifecycle.resume_project,
    "close": lifecycle.close_project,
    "archive": lifecycle.archive_project,
}
_STATE_ACTIONS = {"pause": Action.PAUSE, "resume": Action.PAUSE, "close": Action.CLOSE, "archive": Action.CLOSE}


@require_POST
def change_project_state(request: HttpRequest, slug: str, verb: str) -> HttpResponse:
    """Pause, resume, close or archive the project."""
    actor = membership_or_404(request, slug, _STATE_ACTIONS[verb])
    try:
        _STATE_CHANGES[verb](project=actor.project, by=actor.user, now=timezone.now())
    except lifecycle.ProjectTransitionRefused:
        messages.warning(request, _("Nothing was changed: the project is already in another state."))
    else:
        state = ProjectState(actor.project.state).label
        messages.success(request, _("The project is now %(state)s.") % {"state": state})
    return redirect("dashboard:lifecycle", slug)


@require_safe
@never_cache
def show_lifecycle(request: HttpRequest, slug: str) -> HttpResponse:
    actor = membership_or_404(request, slug, Action.PAUSE)
    return _render_lifecycle(request, actor)


@require_POST
def create_project_clone(request: HttpRequest, slug: str) -> HttpResponse:
    actor = membership_or_404(request, slug, Action.GUIDE)
    if not roles.may_create_projects(actor.user):
        raise roles.NotAllowed(_("Only the operator and project owners can create projects."))
    form = CloneProjectForm(request.POST)
    if not form.is_valid():
        return _render_lifecycle(request, actor, status=422, clone_form=form)
    try:
        clone = owned_projects.clone_owned_project(
            project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data
        )
    except lifecycle.ProjectSlugTaken:
        form.add_error("slug", build_slug_taken_error(form.cleaned_data["slug"]))
        return _render_lifecycle(request, actor, status=422, clone_form=form)
    messages.success(request, _("Project “%(project)s” created.") % {"project": clone.name})
    return redirect("dashboard:settings", clone.slug)


def _render_settings(request: HttpRequest, actor: Membership, *, status: int = 200, **context: Any) -> HttpResponse:
    context.setdefault("form", SettingsForm.for_project(actor.project))
    context.setdefault("overlap_form", OverlapForm(initial=OverlapForm.get_initial_values(actor.project)))
    return project_page(
        request, actor, "dashboard/settings.html", here="settings", tab="settings", status=status, **context
    )


def _render_guideline_editor(
    request: HttpRequest,
    actor: Membership,
    form: GuidelineForm,
    *,
    status: int = 200,
    preview: str = "",
    consent_form: ConsentForm | None = None,
) -> HttpResponse:
    consent_text = actor.project.consent_text
    initial = {"body": consent_text.body if consent_text else ""}
    versions = Guideline.objects.filter(project=actor.project).defer("body").select_related("published_by")
    return project_page(
        request,
        actor,
        "dashboard/guideline.html",
        here="settings",
        tab="guideline",
        status=status,
        form=form,
        preview=preview,
        consent_form=consent_form or ConsentForm(initial=initial, prefix=None, auto_id="id_consent_%s"),
        templates=guidelines.TEMPLATES.items(),
        versions=versions.order_by("-version")[:50],
    )


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
