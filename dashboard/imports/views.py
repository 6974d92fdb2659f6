"""Imports: choose a file, preview it, follow its import, undo it."""

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

from dashboard import paging
from dashboard.access import membership_or_404
from dashboard.imports import page
from dashboard.imports.forms import ImportFileForm, ImportOptionsForm
from dashboard.imports.page import ImportStatus
from dashboard.render import project_page
from formats import catalog, input_files
from jobs import control
from jobs.failures import JobFailed
from jobs.models import Job
from labeling.models import Source
from labeling.traces import import_job, import_report, locations, undo_job, uploads
from labeling.traces.import_job import ImportOptions
from labeling.traces.locations import FileLocation
from people.models import Membership
from people.roles import Action


@require_safe
@never_cache
def show_imports(request: HttpRequest, slug: str) -> HttpResponse:
    return _render_imports(request, membership_or_404(request, slug, Action.BRING_IN))


@require_POST
def upload_import_file(request: HttpRequest, slug: str) -> HttpResponse:
    """Store an uploaded file, or locate one; the next page asks how to import it."""
    actor = membership_or_404(request, slug, Action.BRING_IN)
    form = ImportFileForm(request.POST, request.FILES, has_stores=page.has_object_stores())
    if not form.is_valid():
        return _render_imports(request, actor, status=422, form=form)
    try:
        reference = _store_reference(form.cleaned_data)
    except locations.LocationNotFound as error:
        form.add_error("address", str(error))
        return _render_imports(request, actor, status=422, form=form)
    except uploads.UploadTooLarge:
        form.add_error(
            "upload", _("The file is too large to upload. Ask the operator to put it in the server's folder.")
        )
        return _render_imports(request, actor, status=422, form=form)
    return redirect(f"{reverse('dashboard:import_preview', args=[slug])}?{urlencode({'file': reference})}")


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def preview_import(request: HttpRequest, slug: str) -> HttpResponse:
    """Show how the first records would be imported; import them on request."""
    actor = membership_or_404(request, slug, Action.BRING_IN)
    try:
        location = locations.resolve_location(request.GET.get("file", ""))
    except locations.LocationNotFound as error:
        messages.warning(request, str(error))
        return redirect("dashboard:imports", slug)
    if request.method != "POST":
        return _render_preview(
            request, actor, location, ImportOptionsForm(initial={"format": page.guess_format(location)})
        )
    form = ImportOptionsForm(request.POST)
    if not form.is_valid():
        return _render_preview(request, actor, location, form, status=422)
    if "preview" in request.POST:
        return _render_preview(request, actor, location, form)
    try:
        job = _start_import(actor, location, form.options())
    except (input_files.UnreadableFile, catalog.UnknownFormat, JobFailed) as error:
        return _render_preview(request, actor, location, form, status=422, problem=str(error))
    return redirect("dashboard:import", slug, job.pk)


@require_safe
@never_cache
def show_import(request: HttpRequest, slug: str, job: int, *, is_part: bool = False) -> HttpResponse:
    actor, row = _load_import_job(request, slug, job)
    return _render_import(request, actor, page.load_job_status(row, timezone.now()), is_part=is_part)


@require_safe
@never_cache
def show_import_source(request: HttpRequest, slug: str, source: int, *, is_part: bool = False) -> HttpResponse:
    actor, row = _load_source(request, slug, source)
    return _render_import(request, actor, page.load_source_status(row, timezone.now()), is_part=is_part)


@require_POST
def cancel_import(request: HttpRequest, slug: str, job: int) -> HttpResponse:
    actor, row = _load_import_job(request, slug, job)
    control.cancel_job(job=row, by=actor.user, now=timezone.now())
    messages.success(request, _("Cancelling. Records that are already imported stay."))
    return redirect("dashboard:import", slug, job)


@require_POST
def retry_import(request: HttpRequest, slug: str, job: int) -> HttpResponse:
    actor, row = _load_import_job(request, slug, job)
    try:
        control.retry_job(job=row, by=actor.user, now=timezone.now())
    except control.JobNotRetryable:
        messages.warning(request, _("This import is already running or done."))
    return redirect("dashboard:import", slug, job)


@require_POST
def undo_source_import(request: HttpRequest, slug: str, source: int) -> HttpResponse:
    actor, row = _load_source(request, slug, source)
    try:
        undo_job.request_undo(source=row, by=actor.user, now=timezone.now())
    except undo_job.ImportStillRunning:
        messages.warning(request, _("The import is still running. Cancel it first."))
    return redirect("dashboard:import_source", slug, source)


@require_safe
@never_cache
def download_bad_lines(request: HttpRequest, slug: str, job: int) -> FileResponse:
    actor, row = _load_import_job(request, slug, job)
    path = import_report.path_for_job(row.pk)
    if not path.exists():
        raise Http404
    name = f"{actor.project.slug}-bad-lines-{row.pk}.csv"
    return FileResponse(path.open("rb"), as_attachment=True, filename=name, content_type="text/csv; charset=utf-8")


def _render_imports(
    request: HttpRequest, actor: Membership, *, status: int = 200, form: ImportFileForm | None = None
) -> HttpResponse:
    unfinished = [(job, page.get_file_name(job)) for job in page.list_unfinished_imports(actor.project)]
    return project_page(
        request,
        actor,
        "dashboard/imports.html",
        here="imports",
        status=status,
        form=form or ImportFileForm(has_stores=page.has_object_stores()),
        rows=paging.paginate(page.select_imported_sources(actor.project), request.GET),
        unfinished=unfinished,
    )


def _store_reference(data: dict[str, Any]) -> str:
    upload: UploadedFile[bytes] | None = data.get("upload")
    if upload is not None:
        return locations.make_upload_reference(
            uploads.save_upload(name=upload.name or "", parts=upload.chunks(), size=upload.size)
        )
    return locations.resolve_location(data.get("server_file") or data["address"]).reference


def _render_preview(
    request: HttpRequest,
    actor: Membership,
    location: FileLocation,
    form: ImportOptionsForm,
    *,
    status: int = 200,
    problem: str = "",
) -> HttpResponse:
    is_usable = form.is_bound and form.is_valid()
    options = form.options() if is_usable else ImportOptions(format=form["format"].value() or "auto")
    preview = None
    try:
        preview = page.load_import_preview(location, options)
    except (input_files.UnreadableFile, catalog.UnknownFormat) as error:
        problem = problem or str(error)
    return project_page(
        request,
        actor,
        "dashboard/import_preview.html",
        here="imports",
        status=status,
        location=location,
        form=form,
        problem=problem,
        preview=preview,
        records=list(page.build_preview_records(preview)) if preview else [],
        bad_lines=preview.report.bad_lines[:20] if preview else [],
    )


def _start_import(actor: Membership, location: FileLocation, options: ImportOptions) -> Job:
    project, by, now = actor.project, actor.user, timezone.now()
    if location.path is None:
        return import_job.request_import_from_store(
            project=project, address=location.address, choices=options, by=by, now=now
        )
    return import_job.request_import(project=project, path=location.path, choices=options, by=by, now=now)


def _load_import_job(request: HttpRequest, slug: str, job: int) -> tuple[Membership, Job]:
    actor = membership_or_404(request, slug, Action.BRING_IN)
    subject = f"project:{actor.project.pk}"
    return actor, get_object_or_404(Job, pk=job, kind=import_job.KIND, subject=subject)


def _load_source(request: HttpRequest, slug: str, source: int) -> tuple[Membership, Source]:
    actor = membership_or_404(request, slug, Action.BRING_IN)
    return actor, get_object_or_404(Source.objects.select_related("project"), project=actor.project, pk=source)


def _render_import(request: HttpRequest, actor: Membership, status: ImportStatus, *, is_part: bool) -> HttpResponse:
    """Render the page of one import, or only the part that polls while a job runs."""
    if is_part:
        return render(request, "dashboard/imports/_progress.html", {"project": actor.project, "import_status": status})
    name = status.source.name if status.source else page.get_file_name(status.job) if status.job else ""
    return project_page(request, actor, "dashboard/import.html", here="imports", import_status=status, name=name)
