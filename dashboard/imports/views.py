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

from dashboard import access, paging
from dashboard import render as dashboard_render
from dashboard.imports import page
from dashboard.imports.forms import ImportChoicesForm, ImportFileForm
from dashboard.imports.page import ImportStatus
from formats import catalog, input_files
from jobs import control
from jobs.failures import JobFailed
from jobs.models import Job
from labeling.models import Source
from labeling.traces import bad_lines, import_job, locations, undo_job, uploads
from labeling.traces.import_job import ImportOptions
from labeling.traces.locations import FileLocation
from people.models import Membership
from people.roles import Action


@require_safe
@never_cache
def show_imports(request: HttpRequest, slug: str) -> HttpResponse:
    return _render_imports(request, access.membership_or_404(request, slug, Action.BRING_IN))


@require_POST
def upload_import_file(request: HttpRequest, slug: str) -> HttpResponse:
    """The file is kept, or found where it lies; what becomes of it is asked on the next page."""
    actor = access.membership_or_404(request, slug, Action.BRING_IN)
    form = ImportFileForm(request.POST, request.FILES, has_stores=page.has_object_stores())
    if not form.is_valid():
        return _render_imports(request, actor, status=422, form=form)
    try:
        reference = _store_reference(form.cleaned_data)
    except locations.LocationNotFound as error:
        form.add_error("address", str(error))
        return _render_imports(request, actor, status=422, form=form)
    except uploads.UploadTooLarge:
        form.add_error("sent", _("The file is larger than what is taken over the network."))
        return _render_imports(request, actor, status=422, form=form)
    return redirect(f"{reverse('dashboard:import_preview', args=[slug])}?{urlencode({'file': reference})}")


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def preview_import(request: HttpRequest, slug: str) -> HttpResponse:
    """The beginning of a file as it would come in. It comes in when the person says so."""
    actor = access.membership_or_404(request, slug, Action.BRING_IN)
    try:
        place = locations.resolve_location(request.GET.get("file", ""))
    except locations.LocationNotFound as error:
        messages.warning(request, str(error))
        return redirect("dashboard:imports", slug)
    if request.method != "POST":
        return _render_preview(request, actor, place, ImportChoicesForm(initial={"format": page.guess_format(place)}))
    form = ImportChoicesForm(request.POST)
    if not form.is_valid():
        return _render_preview(request, actor, place, form, status=422)
    if "look" in request.POST:
        return _render_preview(request, actor, place, form)
    try:
        job = _start_import(actor, place, form.choices())
    except (input_files.UnreadableFile, catalog.UnknownFormat, JobFailed) as error:
        return _render_preview(request, actor, place, form, status=422, problem=str(error))
    return redirect("dashboard:import", slug, job.pk)


@require_safe
@never_cache
def show_import(request: HttpRequest, slug: str, job: int, *, is_part: bool = False) -> HttpResponse:
    actor, found = _load_import_job(request, slug, job)
    return _render_import(request, actor, page.load_job_status(found, timezone.now()), is_part=is_part)


@require_safe
@never_cache
def show_import_source(request: HttpRequest, slug: str, source: int, *, is_part: bool = False) -> HttpResponse:
    actor, found = _load_source(request, slug, source)
    return _render_import(request, actor, page.load_source_status(found, timezone.now()), is_part=is_part)


@require_POST
def cancel_import(request: HttpRequest, slug: str, job: int) -> HttpResponse:
    actor, found = _load_import_job(request, slug, job)
    control.cancel_job(job=found, by=actor.user, now=timezone.now())
    messages.success(request, _("The import ends after the records that it is at. What is in stays."))
    return redirect("dashboard:import", slug, job)


@require_POST
def retry_import(request: HttpRequest, slug: str, job: int) -> HttpResponse:
    actor, found = _load_import_job(request, slug, job)
    try:
        control.retry_job(job=found, by=actor.user, now=timezone.now())
    except control.JobNotRetryable:
        messages.warning(request, _("The import is under way, or done."))
    return redirect("dashboard:import", slug, job)


@require_POST
def undo_source_import(request: HttpRequest, slug: str, source: int) -> HttpResponse:
    actor, found = _load_source(request, slug, source)
    try:
        undo_job.request_undo(source=found, by=actor.user, now=timezone.now())
    except undo_job.ImportStillRunning:
        messages.warning(request, _("The file is still coming in: cancel the import first."))
    return redirect("dashboard:import_source", slug, source)


@require_safe
@never_cache
def download_bad_lines(request: HttpRequest, slug: str, job: int) -> FileResponse:
    actor, found = _load_import_job(request, slug, job)
    path = bad_lines.path_for_job(found.pk)
    if not path.exists():
        raise Http404
    name = f"{actor.project.slug}-bad-lines-{found.pk}.csv"
    return FileResponse(path.open("rb"), as_attachment=True, filename=name, content_type="text/csv; charset=utf-8")


def _render_imports(
    request: HttpRequest, actor: Membership, *, status: int = 200, form: ImportFileForm | None = None
) -> HttpResponse:
    stopped = [(job, page.get_file_name(job)) for job in page.list_unfinished_imports(actor.project)]
    form = form or ImportFileForm(has_stores=page.has_object_stores())
    rows = paging.paginate(page.select_imported_sources(actor.project), request.GET)
    return dashboard_render.project_page(
        request, actor, "dashboard/imports.html", here="imports", status=status, form=form, rows=rows, stopped=stopped
    )


def _store_reference(told: dict[str, Any]) -> str:
    sent: UploadedFile[bytes] | None = told.get("sent")
    if sent is not None:
        return locations.make_upload_reference(
            uploads.save_upload(name=sent.name or "", parts=sent.chunks(), size=sent.size)
        )
    return locations.resolve_location(told.get("beside") or told["address"]).reference


def _render_preview(
    request: HttpRequest,
    actor: Membership,
    place: FileLocation,
    form: ImportChoicesForm,
    *,
    status: int = 200,
    problem: str = "",
) -> HttpResponse:
    is_usable = form.is_bound and form.is_valid()
    choices = form.choices() if is_usable else ImportOptions(format=form["format"].value() or "auto")
    found = None
    try:
        found = page.load_import_preview(place, choices)
    except (input_files.UnreadableFile, catalog.UnknownFormat) as error:
        problem = problem or str(error)
    return dashboard_render.project_page(
        request,
        actor,
        "dashboard/import_preview.html",
        here="imports",
        status=status,
        place=place,
        form=form,
        problem=problem,
        preview=found,
        shown=list(page.build_preview_records(found)) if found else [],
        bad=found.report.bad_lines[:20] if found else [],
    )


def _start_import(actor: Membership, place: FileLocation, choices: ImportOptions) -> Job:
    now = timezone.now()
    if place.path is None:
        return import_job.request_import_from_store(
            project=actor.project, address=place.address, choices=choices, by=actor.user, now=now
        )
    return import_job.request_import(project=actor.project, path=place.path, choices=choices, by=actor.user, now=now)


def _load_import_job(request: HttpRequest, slug: str, job: int) -> tuple[Membership, Job]:
    actor = access.membership_or_404(request, slug, Action.BRING_IN)
    its = {"kind": import_job.KIND, "subject": f"project:{actor.project.pk}"}
    return actor, get_object_or_404(Job, pk=job, **its)


def _load_source(request: HttpRequest, slug: str, source: int) -> tuple[Membership, Source]:
    actor = access.membership_or_404(request, slug, Action.BRING_IN)
    return actor, get_object_or_404(Source.objects.select_related("project"), project=actor.project, pk=source)


def _render_import(request: HttpRequest, actor: Membership, found: ImportStatus, *, is_part: bool) -> HttpResponse:
    """The page of one import, or the part of it that is asked for again while something is under way."""
    if is_part:
        return render(request, "dashboard/imports/_progress.html", {"project": actor.project, "standing": found})
    name = found.source.name if found.source else page.get_file_name(found.job) if found.job else ""
    return dashboard_render.project_page(
        request, actor, "dashboard/import.html", here="imports", standing=found, name=name
    )
