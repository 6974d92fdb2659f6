"""Imports: choose a file, follow its import, undo it."""

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.db.models import Exists, OuterRef, Q
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.confirmation import require_confirmation
from dashboard import paging
from dashboard.access import membership_or_404, post_view, safe_view
from dashboard.render import project_page
from dashboard.views.import_preview import MAX_BAD_LINES
from events import audit_log
from jobs import control
from jobs.models import Job, JobQuerySet, JobState
from labeling.models import Project, Source, Trace
from labeling.traces import import_job, locations, scan, undo
from labeling.traces.scan import ImportReport
from people.models import Membership
from people.roles import Action

MAX_UNFINISHED = 20


class ImportFileForm(forms.Form):
    """One file: uploaded, from the server's folder, or from an object store."""

    upload = forms.FileField(
        label=_("Upload a file"),
        required=False,
        allow_empty_file=True,
        help_text=_("For records with images, upload a ZIP archive with one file of records and the images."),
    )
    server_file = forms.ChoiceField(label=_("File in the server’s import folder"), required=False)
    address = forms.CharField(
        label=_("Object store address"),
        required=False,
        max_length=1000,
        help_text=_("For example s3://traces/a.jsonl.gz"),
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        files = [(reference, reference.partition(":")[2]) for reference in locations.list_incoming_files(project)]
        self.fields["server_file"].choices = [("", _("Choose a file")), *files]  # type: ignore[attr-defined]  # it is a ChoiceField
        if not files:
            del self.fields["server_file"]
        if not locations.list_allowed_addresses():
            del self.fields["address"]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if sum(bool(data.get(name)) for name in self.fields) != 1 and not self.errors:
            raise ValidationError(_("Choose exactly one file."), code="one_file")
        return data


@dataclass(frozen=True)
class ImportStatus:
    """State of one import: its job, its source and its report."""

    source: Source | None
    job: Job | None
    undo_job: Job | None  # while it runs, or after it failed
    undo_result: dict[str, int]  # counts of the last undo, if it was requested on a page
    report: ImportReport | None
    tables: list[scan.ReportTable]
    has_bad_lines_file: bool
    is_imported: bool
    time_left: dt.timedelta | None

    @property
    def bad_lines(self) -> list[scan.BadLineGroup]:
        return scan.group_bad_lines(self.report.bad_lines)[:MAX_BAD_LINES] if self.report else []

    @property
    def is_under_way(self) -> bool:
        return any(job is not None and job.is_unfinished for job in (self.job, self.undo_job))

    @property
    def may_be_undone(self) -> bool:
        return self.source is not None and self.is_imported and self.source.undone_at is None and not self.is_under_way


@safe_view(Action.BRING_IN)
def show_imports(request: HttpRequest, actor: Membership) -> HttpResponse:
    return _render_imports(request, actor, ImportFileForm(project=actor.project))


@post_view(Action.BRING_IN, accepts_files=True)
def upload_import_file(request: HttpRequest, actor: Membership) -> HttpResponse:
    """Store an uploaded file, or locate one; the next page asks how to import it."""
    form = ImportFileForm(request.POST, request.FILES, project=actor.project)
    reference = _store_file(form, actor.project) if form.is_valid() else None
    if reference is None:
        return _render_imports(request, actor, form, status=422)
    preview = reverse("dashboard:import_preview", args=[actor.project.slug])
    return redirect(f"{preview}?{urlencode({'file': reference})}")


@safe_view(Action.BRING_IN)
def show_import(request: HttpRequest, actor: Membership, job: int, *, is_part: bool = False) -> HttpResponse:
    row = _load_import_job(actor, job)
    pk = row.result.get("source") or row.arguments.get("source")
    source = Source.objects.filter(pk=pk, project=actor.project).first() if pk else None
    return _render_import(request, actor, source, row, is_part=is_part)


@safe_view(Action.BRING_IN)
def show_import_source(request: HttpRequest, actor: Membership, source: int, *, is_part: bool = False) -> HttpResponse:
    row = get_object_or_404(Source, project=actor.project, pk=source)
    is_of_source = Q(arguments__source=row.pk) | Q(result__source=row.pk)
    job = _select_jobs(actor.project, import_job.KIND).filter(is_of_source).order_by("-pk").first()
    return _render_import(request, actor, row, job, is_part=is_part)


@post_view(Action.BRING_IN)
def cancel_import(request: HttpRequest, actor: Membership, job: int) -> HttpResponse:
    control.cancel_job(job=_load_import_job(actor, job), by=actor.user, now=timezone.now())
    messages.success(request, _("Canceling the import. Records that are already imported are kept."))
    return redirect("dashboard:import", actor.project.slug, job)


@post_view(Action.BRING_IN)
def retry_import(request: HttpRequest, actor: Membership, job: int) -> HttpResponse:
    row = _load_import_job(actor, job)
    try:
        control.retry_job(job=row, by=actor.user, now=timezone.now())
    except control.JobNotRetryable:
        messages.warning(request, _("This import is already running or has finished."))
    return redirect("dashboard:import", actor.project.slug, job)


@post_view(Action.BRING_IN)
def undo_source_import(request: HttpRequest, actor: Membership, source: int) -> HttpResponse:
    row = get_object_or_404(Source.objects.select_related("project"), project=actor.project, pk=source)
    try:
        undo.request_undo(source=row, by=actor.user, now=timezone.now())
    except undo.ImportStillRunning:
        messages.warning(request, _("The import is still running. Cancel it first."))
    return redirect("dashboard:import_source", actor.project.slug, source)


@require_confirmation(is_download=True)
@require_safe
@never_cache
def download_bad_lines(request: HttpRequest, slug: str, job: int) -> FileResponse:
    actor = membership_or_404(request, slug, Action.BRING_IN)
    path = scan.bad_lines_path(_load_import_job(actor, job).pk)
    if not path.exists():
        raise Http404
    name = f"{actor.project.slug}-bad-lines-{job}.csv"
    audit_log.log_download(file=name, by=actor.user, now=timezone.now(), project=actor.project_id)
    return FileResponse(path.open("rb"), as_attachment=True, filename=name, content_type="text/csv; charset=utf-8")


def _render_imports(
    request: HttpRequest, actor: Membership, form: ImportFileForm, *, status: int = 200
) -> HttpResponse:
    had_traces = Q(reported_at__isnull=False) | Exists(Trace.objects.filter(source=OuterRef("pk")))
    unfinished = _select_jobs(actor.project, import_job.KIND).exclude(state=JobState.DONE).order_by("-pk")
    return project_page(
        request,
        actor,
        "dashboard/imports.html",
        here="imports",
        status=status,
        form=form,
        rows=paging.paginate(Source.objects.filter(had_traces, project=actor.project), request.GET),
        unfinished=[(job, _get_file_name(job)) for job in unfinished[:MAX_UNFINISHED]],
    )


def _store_file(form: ImportFileForm, project: Project) -> str | None:
    """Return the reference of the stored file, or None with an error in the form."""
    data = form.cleaned_data
    upload: UploadedFile[bytes] | None = data.get("upload")
    try:
        if upload is None:
            return locations.resolve_location(data.get("server_file") or data["address"], project=project).reference
        path = locations.save_upload(name=upload.name or "", parts=upload.chunks(), size=upload.size)
        return locations.make_upload_reference(path, project=project)
    except locations.LocationNotFound as error:
        form.add_error("address", str(error))
    except locations.UploadTooLarge:
        problem = _("The file is too large to upload. Ask the operator to put it in the server’s import folder.")
        form.add_error("upload", problem)
    return None


def _load_import_job(actor: Membership, job: int) -> Job:
    return get_object_or_404(_select_jobs(actor.project, import_job.KIND), pk=job)


def _select_jobs(project: Project, kind: str) -> JobQuerySet:
    return Job.objects.filter(kind=kind, subject=f"project:{project.pk}")


def _get_file_name(job: Job) -> str:
    return str(job.arguments.get("address") or Path(str(job.arguments.get("path", ""))).name)


def _render_import(
    request: HttpRequest, actor: Membership, source: Source | None, job: Job | None, *, is_part: bool
) -> HttpResponse:
    """Render the page of one import, or only the part that polls while a job runs."""
    status = _build_status(actor.project, source, job, timezone.now())
    if is_part:
        return render(request, "dashboard/imports/_progress.html", {"project": actor.project, "import_status": status})
    name = source.name if source else _get_file_name(job) if job else ""
    return project_page(request, actor, "dashboard/import.html", here="imports", import_status=status, name=name)


def _build_status(project: Project, source: Source | None, job: Job | None, now: dt.datetime) -> ImportStatus:
    undos = _select_jobs(project, undo.KIND).filter(arguments__source=source.pk if source else None)
    last_undo = undos.order_by("-pk").first()
    stored_report = (job.result.get("report") if job else None) or (source.report if source else None)
    report = msgspec.convert(stored_report, ImportReport) if stored_report else None
    seconds = job.remaining_seconds(now) if job else None
    is_imported = source is not None and (source.reported_at is not None or source.traces.exists())
    return ImportStatus(
        source=source,
        job=job,
        undo_job=last_undo if last_undo and (last_undo.is_unfinished or last_undo.state == JobState.FAILED) else None,
        undo_result=last_undo.result.get("undone", {}) if last_undo else {},
        report=report,
        tables=scan.make_report_tables(report, came_in=is_imported) if report else [],
        has_bad_lines_file=job is not None and scan.bad_lines_path(job.pk).exists(),
        is_imported=is_imported,
        time_left=None if seconds is None else dt.timedelta(seconds=seconds),
    )
