"""What is set in a project: options, how often traces are read, the guideline, and the project's life."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard import door, page
from dashboard.forms import taken
from dashboard.settings_forms import CloneForm, ConsentForm, GuidelineForm, OptionsForm, ReadingForm
from labeling import guidelines, overlapping, projects
from labeling.guidelines import rendering
from labeling.models import Guideline
from labeling.models.project import ProjectState
from people import projects as projects_of_people
from people import roles
from people.models import Membership
from people.roles import Action


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def options(request: HttpRequest, slug: str) -> HttpResponse:
    actor = door.enter(request, slug, Action.GUIDE)
    if request.method != "POST":
        return _page(request, actor)
    form = OptionsForm.of(actor.project, request.POST)
    if not form.is_valid():
        return _page(request, actor, status=422, form=form)
    try:
        projects.change(project=actor.project, by=actor.user, now=timezone.now(), **form.changed())
    except projects.NotChangeable as refused:
        return _page(request, actor, status=422, form=form, problem=str(refused))
    messages.success(request, _("Kept. What was opened before keeps what was in force then."))
    return redirect("dashboard:settings", slug)


@require_POST
@never_cache
def reading(request: HttpRequest, slug: str) -> HttpResponse:
    """Says first what will happen to the work under way; changes it when that is confirmed."""
    actor = door.enter(request, slug, Action.GUIDE)
    form = ReadingForm(request.POST, initial=ReadingForm.of(actor.project))
    if not form.is_valid():
        return _page(request, actor, status=422, reading_form=form)
    if not form.has_changed():
        return redirect("dashboard:settings", slug)
    if "confirmed" not in request.POST:
        under_way = overlapping.under_way(project_id=actor.project.pk)
        before = ReadingForm.of(actor.project)
        template = "dashboard/confirm_reading.html"
        return page.show(request, actor, template, here="settings", form=form, under_way=under_way, before=before)
    _change_reading(actor, form.cleaned_data)
    messages.success(request, _("Changed. Traces that are still open follow in the background; see Jobs."))
    return redirect("dashboard:settings", slug)


def _change_reading(actor: Membership, wanted: dict[str, int]) -> None:
    overlapping.change(
        project=actor.project,
        overlap=wanted["overlap"],
        overlap_limit=wanted["overlap_limit"],
        lease_seconds=wanted["lease_minutes"] * 60,
        by=actor.user,
        now=timezone.now(),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def guideline(request: HttpRequest, slug: str) -> HttpResponse:
    """The editor. A preview shows what raters would read; publishing makes the next version."""
    actor = door.enter(request, slug, Action.GUIDE)
    if request.method != "POST":
        return _editor(request, actor, GuidelineForm(initial={"body": _beginning(actor, request.GET.get("template"))}))
    form = GuidelineForm(request.POST)
    if not form.is_valid():
        return _editor(request, actor, form, status=422)
    if "preview" in request.POST:
        return _editor(request, actor, form, preview=rendering.to_html(form.cleaned_data["body"]))
    made = projects.publish_guideline(project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data)
    messages.success(
        request, _("Version %(n)d is published. Raters read it before their next trace.") % {"n": made.version}
    )
    return redirect("dashboard:guideline", slug)


def _beginning(actor: Membership, template: str | None) -> str:
    """What stands in the editor: the version in force, or one that comes with the program."""
    if template in guidelines.TEMPLATES:
        return guidelines.text_of(str(template))
    return actor.project.guideline.body if actor.project.guideline else ""


@require_POST
def consent(request: HttpRequest, slug: str) -> HttpResponse:
    actor = door.enter(request, slug, Action.GUIDE)
    form = ConsentForm(request.POST)
    if not form.is_valid():
        return _editor(request, actor, GuidelineForm(), status=422, consent_form=form)
    projects.publish_consent_text(project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data)
    messages.success(request, _("Kept. Raters are asked before their next trace."))
    return redirect("dashboard:guideline", slug)


@require_safe
@never_cache
def guideline_version(request: HttpRequest, slug: str, version: int) -> HttpResponse:
    actor = door.enter(request, slug, Action.READ)
    found = get_object_or_404(Guideline, project=actor.project, version=version)
    html = rendering.to_html(found.body)
    return page.show(request, actor, "dashboard/guideline_version.html", here="settings", version=found, html=html)


_VERBS = {"pause": projects.pause, "resume": projects.resume, "close": projects.close, "archive": projects.archive}
_NEEDS = {"pause": Action.PAUSE, "resume": Action.PAUSE, "close": Action.CLOSE, "archive": Action.CLOSE}


@require_POST
def live(request: HttpRequest, slug: str, verb: str) -> HttpResponse:
    """Pause, resume, close or archive the project."""
    actor = door.enter(request, slug, _NEEDS[verb])
    try:
        _VERBS[verb](project=actor.project, by=actor.user, now=timezone.now())
    except projects.StateIsDifferent:
        messages.warning(request, _("The project is in another state by now. Nothing was changed."))
    else:
        told = {"state": ProjectState(actor.project.state).label}
        messages.success(request, _("The project is %(state)s now.") % told)
    return redirect("dashboard:life", slug)


@require_safe
@never_cache
def life(request: HttpRequest, slug: str) -> HttpResponse:
    actor = door.enter(request, slug, Action.PAUSE)
    return _life(request, actor)


@require_POST
def clone(request: HttpRequest, slug: str) -> HttpResponse:
    actor = door.enter(request, slug, Action.GUIDE)
    if not roles.may_create_projects(actor.user):
        raise roles.NotAllowed(_("Projects are made by the operator of this platform and by owners of projects."))
    form = CloneForm(request.POST)
    if not form.is_valid():
        return _life(request, actor, status=422, clone_form=form)
    try:
        made = projects_of_people.clone(project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except projects.AddressIsTaken:
        form.add_error("slug", taken(form.cleaned_data["slug"]))
        return _life(request, actor, status=422, clone_form=form)
    said = _("“%(project)s” has the options, the guideline and its consent, nothing else.")
    messages.success(request, said % {"project": made.name})
    return redirect("dashboard:settings", made.slug)


def _page(request: HttpRequest, actor: Membership, *, status: int = 200, **told: Any) -> HttpResponse:
    told.setdefault("form", OptionsForm.of(actor.project))
    told.setdefault("reading_form", ReadingForm(initial=ReadingForm.of(actor.project)))
    return page.show(request, actor, "dashboard/settings.html", here="settings", tab="options", status=status, **told)


def _editor(
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
    return page.show(
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


def _life(request: HttpRequest, actor: Membership, *, status: int = 200, **told: Any) -> HttpResponse:
    told.setdefault(
        "clone_form", CloneForm(initial={"name": f"{actor.project.name} (2)", "slug": f"{actor.project.slug}-2"})
    )
    return page.show(
        request,
        actor,
        "dashboard/life.html",
        here="settings",
        tab="life",
        status=status,
        under_way=overlapping.under_way(project_id=actor.project.pk),
        may_close=roles.does(actor, Action.CLOSE),
        may_clone=roles.may_create_projects(actor.user),
        **told,
    )
