"""What is set in a project: options, how often traces are read, the guideline, and the project's life."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard import access, render
from dashboard.project_slugs import build_slug_taken_error
from dashboard.settings.forms import CloneProjectForm, ConsentForm, GuidelineForm, OverlapForm, SettingsForm
from labeling import overlap_change
from labeling.models import Guideline
from labeling.models.project import ProjectState
from labeling.projects import guidelines, lifecycle
from labeling.projects.guidelines import rendering
from people import owned_projects as projects_of_people
from people import roles
from people.models import Membership
from people.roles import Action


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def edit_settings(request: HttpRequest, slug: str) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.GUIDE)
    if request.method != "POST":
        return _render_settings(request, actor)
    form = SettingsForm.of(actor.project, request.POST)
    if not form.is_valid():
        return _render_settings(request, actor, status=422, form=form)
    try:
        lifecycle.change_settings(project=actor.project, by=actor.user, now=timezone.now(), **form.changed())
    except lifecycle.SettingNotChangeable as refused:
        return _render_settings(request, actor, status=422, form=form, problem=str(refused))
    messages.success(request, _("Kept. What was opened before keeps what was in force then."))
    return redirect("dashboard:settings", slug)


@require_POST
@never_cache
def edit_overlap(request: HttpRequest, slug: str) -> HttpResponse:
    """Says first what will happen to the work under way; changes it when that is confirmed."""
    actor = access.membership_or_404(request, slug, Action.GUIDE)
    form = OverlapForm(request.POST, initial=OverlapForm.of(actor.project))
    if not form.is_valid():
        return _render_settings(request, actor, status=422, reading_form=form)
    if not form.has_changed():
        return redirect("dashboard:settings", slug)
    if "confirmed" not in request.POST:
        under_way = overlap_change.measure_overlap_impact(project_id=actor.project.pk)
        before = OverlapForm.of(actor.project)
        template = "dashboard/confirm_overlap.html"
        return render.project_page(
            request, actor, template, here="settings", form=form, under_way=under_way, before=before
        )
    _change_overlap(actor, form.cleaned_data)
    messages.success(request, _("Changed. Traces that are still open follow in the background; see Jobs."))
    return redirect("dashboard:settings", slug)


def _change_overlap(actor: Membership, wanted: dict[str, int]) -> None:
    overlap_change.change_overlap(
        project=actor.project,
        overlap=wanted["overlap"],
        overlap_limit=wanted["overlap_limit"],
        lease_seconds=wanted["lease_minutes"] * 60,
        by=actor.user,
        now=timezone.now(),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def edit_guideline(request: HttpRequest, slug: str) -> HttpResponse:
    """The editor. A preview shows what raters would read; publishing makes the next version."""
    actor = access.membership_or_404(request, slug, Action.GUIDE)
    if request.method != "POST":
        return _render_guideline_editor(
            request, actor, GuidelineForm(initial={"body": _get_initial_body(actor, request.GET.get("template"))})
        )
    form = GuidelineForm(request.POST)
    if not form.is_valid():
        return _render_guideline_editor(request, actor, form, status=422)
    if "preview" in request.POST:
        return _render_guideline_editor(request, actor, form, preview=rendering.to_html(form.cleaned_data["body"]))
    made = lifecycle.publish_guideline(project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data)
    messages.success(
        request, _("Version %(n)d is published. Raters read it before their next trace.") % {"n": made.version}
    )
    return redirect("dashboard:guideline", slug)


def _get_initial_body(actor: Membership, template: str | None) -> str:
    """What stands in the editor: the version in force, or one that comes with the program."""
    if template in guidelines.TEMPLATES:
        return guidelines.load_guideline_template(str(template))
    return actor.project.guideline.body if actor.project.guideline else ""


@require_POST
def save_consent_text(request: HttpRequest, slug: str) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.GUIDE)
    form = ConsentForm(request.POST)
    if not form.is_valid():
        return _render_guideline_editor(request, actor, GuidelineForm(), status=422, consent_form=form)
    lifecycle.publish_consent_text(project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data)
    messages.success(request, _("Kept. Raters are asked before their next trace."))
    return redirect("dashboard:guideline", slug)


@require_safe
@never_cache
def show_guideline_version(request: HttpRequest, slug: str, version: int) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.READ)
    found = get_object_or_404(Guideline, project=actor.project, version=version)
    html = rendering.to_html(found.body)
    return render.project_page(
        request, actor, "dashboard/guideline_version.html", here="settings", version=found, html=html
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
    actor = access.membership_or_404(request, slug, _STATE_ACTIONS[verb])
    try:
        _STATE_CHANGES[verb](project=actor.project, by=actor.user, now=timezone.now())
    except lifecycle.ProjectTransitionRefused:
        messages.warning(request, _("The project is in another state by now. Nothing was changed."))
    else:
        told = {"state": ProjectState(actor.project.state).label}
        messages.success(request, _("The project is %(state)s now.") % told)
    return redirect("dashboard:lifecycle", slug)


@require_safe
@never_cache
def show_lifecycle(request: HttpRequest, slug: str) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.PAUSE)
    return _render_lifecycle(request, actor)


@require_POST
def create_project_clone(request: HttpRequest, slug: str) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.GUIDE)
    if not roles.may_create_projects(actor.user):
        raise roles.NotAllowed(_("Projects are made by the operator of this platform and by owners of projects."))
    form = CloneProjectForm(request.POST)
    if not form.is_valid():
        return _render_lifecycle(request, actor, status=422, clone_form=form)
    try:
        made = projects_of_people.clone_owned_project(
            project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data
        )
    except lifecycle.ProjectSlugTaken:
        form.add_error("slug", build_slug_taken_error(form.cleaned_data["slug"]))
        return _render_lifecycle(request, actor, status=422, clone_form=form)
    said = _("“%(project)s” has the options, the guideline and its consent, nothing else.")
    messages.success(request, said % {"project": made.name})
    return redirect("dashboard:settings", made.slug)


def _render_settings(request: HttpRequest, actor: Membership, *, status: int = 200, **told: Any) -> HttpResponse:
    told.setdefault("form", SettingsForm.of(actor.project))
    told.setdefault("reading_form", OverlapForm(initial=OverlapForm.of(actor.project)))
    return render.project_page(
        request, actor, "dashboard/settings.html", here="settings", tab="options", status=status, **told
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
    return render.project_page(
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


def _render_lifecycle(request: HttpRequest, actor: Membership, *, status: int = 200, **told: Any) -> HttpResponse:
    told.setdefault(
        "clone_form", CloneProjectForm(initial={"name": f"{actor.project.name} (2)", "slug": f"{actor.project.slug}-2"})
    )
    return render.project_page(
        request,
        actor,
        "dashboard/lifecycle.html",
        here="settings",
        tab="life",
        status=status,
        under_way=overlap_change.measure_overlap_impact(project_id=actor.project.pk),
        may_close=roles.membership_may(actor, Action.CLOSE),
        may_clone=roles.may_create_projects(actor.user),
        **told,
    )
