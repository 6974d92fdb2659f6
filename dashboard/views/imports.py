"""Files that come into a project: choosing one, looking at it, following its import, taking it back."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard import door, incoming, page, paging
from dashboard.incoming import Standing
from dashboard.incoming_forms import ChoicesForm, FileForm
from jobs import work
from jobs.failures import Failed
from jobs.models import Job
from labeling.importing import bad_lines, bringing, files, lying, undoing, uploads
from labeling.importing.bringing import Choices
from labeling.importing.lying import Place
from labeling.importing.readers import formats
from labeling.models import Source
from people.models import Membership
from people.roles import Action


@require_safe
@never_cache
def find(request: HttpRequest, slug: str) -> HttpResponse:
    return _find(request, door.enter(request, slug, Action.BRING_IN))


@require_POST
def send(request: HttpRequest, slug: str) -> HttpResponse:
    """The file is kept, or found where it lies; what becomes of it is asked on the next page."""
    actor = door.enter(request, slug, Action.BRING_IN)
    form = FileForm(request.POST, request.FILES, has_stores=incoming.has_stores())
    if not form.is_valid():
        return _find(request, actor, status=422, form=form)
    try:
        reference = _reference(form.cleaned_data)
    except lying.NotThere as error:
        form.add_error("address", str(error))
        return _find(request, actor, status=422, form=form)
    except uploads.TooBig:
        form.add_error("sent", _("The file is larger than what is taken over the network."))
        return _find(request, actor, status=422, form=form)
    return redirect(f"{reverse('dashboard:look_at_file', args=[slug])}?{urlencode({'file': reference})}")


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def look(request: HttpRequest, slug: str) -> HttpResponse:
    """The beginning of a file as it would come in. It comes in when the person says so."""
    actor = door.enter(request, slug, Action.BRING_IN)
    try:
        place = lying.find(request.GET.get("file", ""))
    except lying.NotThere as error:
        messages.warning(request, str(error))
        return redirect("dashboard:imports", slug)
    if request.method != "POST":
        return _look(request, actor, place, ChoicesForm(initial={"format": incoming.format_of(place)}))
    form = ChoicesForm(request.POST)
    if not form.is_valid():
        return _look(request, actor, place, form, status=422)
    if "look" in request.POST:
        return _look(request, actor, place, form)
    try:
        job = _ask(actor, place, form.choices())
    except (files.Unreadable, formats.UnknownFormat, Failed) as error:
        return _look(request, actor, place, form, status=422, problem=str(error))
    return redirect("dashboard:import", slug, job.pk)


@require_safe
@never_cache
def one(request: HttpRequest, slug: str, job: int, *, is_part: bool = False) -> HttpResponse:
    actor, found = _job(request, slug, job)
    return _show(request, actor, incoming.of_job(found, timezone.now()), is_part=is_part)


@require_safe
@never_cache
def brought(request: HttpRequest, slug: str, source: int, *, is_part: bool = False) -> HttpResponse:
    actor, found = _source(request, slug, source)
    return _show(request, actor, incoming.of_source(found, timezone.now()), is_part=is_part)


@require_POST
def cancel(request: HttpRequest, slug: str, job: int) -> HttpResponse:
    actor, found = _job(request, slug, job)
    work.cancel(job=found, by=actor.user, now=timezone.now())
    messages.success(request, _("The import ends after the records that it is at. What is in stays."))
    return redirect("dashboard:import", slug, job)


@require_POST
def retry(request: HttpRequest, slug: str, job: int) -> HttpResponse:
    actor, found = _job(request, slug, job)
    try:
        work.retry(job=found, by=actor.user, now=timezone.now())
    except work.NotRetryable:
        messages.warning(request, _("The import is under way, or done."))
    return redirect("dashboard:import", slug, job)


@require_POST
def undo(request: HttpRequest, slug: str, source: int) -> HttpResponse:
    actor, found = _source(request, slug, source)
    try:
        undoing.ask(source=found, by=actor.user, now=timezone.now())
    except undoing.StillComing:
        messages.warning(request, _("The file is still coming in: cancel the import first."))
    return redirect("dashboard:brought_in", slug, source)


@require_safe
@never_cache
def bad_lines_of(request: HttpRequest, slug: str, job: int) -> FileResponse:
    actor, found = _job(request, slug, job)
    path = bad_lines.of_job(found.pk)
    if not path.exists():
        raise Http404
    name = f"{actor.project.slug}-bad-lines-{found.pk}.csv"
    return FileResponse(path.open("rb"), as_attachment=True, filename=name, content_type="text/csv; charset=utf-8")


def _find(request: HttpRequest, actor: Membership, *, status: int = 200, form: FileForm | None = None) -> HttpResponse:
    stopped = [(job, incoming.name_of(job)) for job in incoming.at_work_or_stopped(actor.project)]
    form = form or FileForm(has_stores=incoming.has_stores())
    rows = paging.of(incoming.came_in(actor.project), request.GET)
    return page.show(
        request, actor, "dashboard/imports.html", here="imports", status=status, form=form, rows=rows, stopped=stopped
    )


def _reference(told: dict[str, Any]) -> str:
    sent: UploadedFile[bytes] | None = told.get("sent")
    if sent is not None:
        return lying.sent(uploads.keep(name=sent.name or "", parts=sent.chunks(), size=sent.size))
    return lying.find(told.get("beside") or told["address"]).reference


def _look(
    request: HttpRequest, actor: Membership, place: Place, form: ChoicesForm, *, status: int = 200, problem: str = ""
) -> HttpResponse:
    is_usable = form.is_bound and form.is_valid()
    choices = form.choices() if is_usable else Choices(format=form["format"].value() or "auto")
    found = None
    try:
        found = incoming.preview(place, choices)
    except (files.Unreadable, formats.UnknownFormat) as error:
        problem = problem or str(error)
    return page.show(
        request,
        actor,
        "dashboard/import_look.html",
        here="imports",
        status=status,
        place=place,
        form=form,
        problem=problem,
        preview=found,
        shown=list(incoming.shown(found)) if found else [],
        bad=found.report.bad_lines[:20] if found else [],
    )


def _ask(actor: Membership, place: Place, choices: Choices) -> Job:
    now = timezone.now()
    if place.path is None:
        return bringing.ask_for(project=actor.project, address=place.address, choices=choices, by=actor.user, now=now)
    return bringing.ask(project=actor.project, path=place.path, choices=choices, by=actor.user, now=now)


def _job(request: HttpRequest, slug: str, job: int) -> tuple[Membership, Job]:
    actor = door.enter(request, slug, Action.BRING_IN)
    its = {"kind": bringing.KIND, "subject": f"project:{actor.project.pk}"}
    return actor, get_object_or_404(Job, pk=job, **its)


def _source(request: HttpRequest, slug: str, source: int) -> tuple[Membership, Source]:
    actor = door.enter(request, slug, Action.BRING_IN)
    return actor, get_object_or_404(Source.objects.select_related("project"), project=actor.project, pk=source)


def _show(request: HttpRequest, actor: Membership, found: Standing, *, is_part: bool) -> HttpResponse:
    """The page of one import, or the part of it that is asked for again while something is under way."""
    if is_part:
        return render(request, "dashboard/_import_standing.html", {"project": actor.project, "standing": found})
    name = found.source.name if found.source else incoming.name_of(found.job) if found.job else ""
    return page.show(request, actor, "dashboard/import.html", here="imports", standing=found, name=name)
