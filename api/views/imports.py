"""Import traces: the body is the file, the query holds the options."""

from pathlib import Path
from typing import Any, ClassVar, cast

import msgspec
from django.http import FileResponse, Http404
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from accounts.models import Scope, User
from api import idempotency, request_bodies
from api.authentication import limit_requests
from api.problems import ApiProblem
from api.views.projects import ProjectView
from events import audit_log
from formats import catalog, input_files, segmenters
from jobs import control
from jobs.failures import JobFailed
from jobs.models import Job, JobState
from labeling.models import Project
from labeling.models.gold import GoldUse
from labeling.models.trace import ImportedLabelKind, SourcePurpose
from labeling.traces import import_job, locations, scan
from people.roles import Action

MAX_LISTED = 100
MAX_KEY_LENGTH = 100
IDEMPOTENCY_KEY_HEADER = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="A repeated request with the same key returns the same import.",
)


class JobSerializer(serializers.Serializer[Job]):
    """A background job: its progress and result."""

    id = serializers.IntegerField()
    state = serializers.ChoiceField(choices=JobState.choices)
    done = serializers.IntegerField(help_text="Out of `total`; the unit depends on the job: records, files or scores.")
    total = serializers.IntegerField(allow_null=True)
    remaining_seconds = serializers.SerializerMethodField()
    failure = serializers.CharField(help_text="Why the job failed and what to do; otherwise empty.")
    result = serializers.DictField(help_text="The result so far; for an import, its report.")
    asked_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)

    def get_remaining_seconds(self, job: Job) -> float | None:
        """Estimated from the pace so far; null if unknown."""
        return job.remaining_seconds(self.context["now"])


class ImportChoices(serializers.Serializer[Any]):
    """Import options, the same as those of `manage.py import_traces`."""

    name = serializers.CharField(
        default="traces.jsonl", max_length=200, help_text="File name; “.gz” and “.zst” are decompressed."
    )
    format = serializers.ChoiceField(default="auto", choices=["auto", *catalog.INPUT_FORMATS])
    segmenter = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=60,
        trim_whitespace=False,
        help_text="A segmenter, “best fit”, or “separator 1: ” and your own separator.",
    )
    columns = serializers.CharField(
        default="", allow_blank=True, max_length=2000, help_text="For CSV and Parquet: “question=problem,notes=”."
    )
    labels = serializers.ChoiceField(default="judgments", choices=list(ImportedLabelKind.values))
    labels_by = serializers.CharField(default="", allow_blank=True, max_length=160)
    gold_use = serializers.ChoiceField(default=GoldUse.HIDDEN.value, choices=GoldUse.choices)
    purpose = serializers.ChoiceField(default=SourcePurpose.RATE.value, choices=SourcePurpose.choices)
    private = serializers.ChoiceField(default="count", choices=["count", "mask", "refuse"])
    licence = serializers.CharField(default="", allow_blank=True, max_length=200)
    statement = serializers.CharField(
        default="", allow_blank=True, max_length=2000, help_text="Where the data comes from."
    )
    is_lenient = serializers.BooleanField(default=False, help_text="Skip bad lines instead of rejecting the file.")

    def validate_segmenter(self, name: str) -> str:
        try:
            segmenters.check_segmenter(name)
        except segmenters.UnknownSegmenter as error:
            raise serializers.ValidationError(str(error)) from None
        return name

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse unknown options: a misspelled one would be ignored and import the file differently."""
        unknown = sorted(set(self.initial_data) - set(self.fields))
        if unknown:
            raise serializers.ValidationError({name: [_("Unknown option.")] for name in unknown})
        return attrs


class ImportListView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.BRING_IN}
    actions: ClassVar = {"GET": Action.READ, "POST": Action.BRING_IN}

    @extend_schema(operation_id="list_imports", responses=JobSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The newest imports of the project."""
        project = self.enter(request, slug).project
        return Response([job_payload(job) for job in _project_imports(project).order_by("-pk")[:MAX_LISTED]])

    @extend_schema(
        operation_id="bring_traces_in",
        parameters=[ImportChoices, IDEMPOTENCY_KEY_HEADER],
        request={"application/x-ndjson": OpenApiTypes.BINARY, "application/octet-stream": OpenApiTypes.BINARY},
        responses={202: JobSerializer, 200: JobSerializer},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Import a file. By default, a single bad line refuses the whole file; the import's report lists the bad
        lines."""
        project = self.enter(request, slug).project
        choices = ImportChoices(data=request.query_params)
        choices.is_valid(raise_exception=True)
        job, is_new = _request_import(request, project, dict(choices.validated_data))
        location = reverse("api:import", args=[slug, job.pk], request=request)
        return Response(job_payload(job), status=202 if is_new else 200, headers={"Location": location})


class ImportDetailView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ, "DELETE": Scope.BRING_IN}
    actions: ClassVar = {"GET": Action.READ, "DELETE": Action.BRING_IN}

    @extend_schema(operation_id="follow_import", responses=JobSerializer)
    def get(self, request: Request, slug: str, job: int) -> Response:
        """The progress of an import, and its report."""
        project = self.enter(request, slug).project
        return Response(job_payload(get_object_or_404(_project_imports(project), pk=job)))

    @extend_schema(operation_id="cancel_import", responses={202: JobSerializer})
    def delete(self, request: Request, slug: str, job: int) -> Response:
        """Stop an import after the current chunk. Imported traces are kept; importing the file again continues."""
        row = get_object_or_404(_project_imports(self.enter(request, slug).project), pk=job)
        control.cancel_job(job=row, by=cast(User, request.user), now=timezone.now())
        row.refresh_from_db()
        return Response(job_payload(row), status=202)


class BadLinesView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ}
    actions: ClassVar = {"GET": Action.READ}

    @extend_schema(operation_id="read_bad_lines", responses={(200, "text/csv"): OpenApiTypes.BINARY})
    def get(self, request: Request, slug: str, job: int) -> FileResponse:
        """All bad lines of an import as CSV: line, column, reason."""
        project = self.enter(request, slug).project
        row = get_object_or_404(_project_imports(project), pk=job)
        path = scan.bad_lines_path(row.pk)
        if not path.exists():
            raise Http404
        name, by = f"{slug}-bad-lines-{job}.csv", cast(User, request.user)
        audit_log.log_download(file=name, by=by, now=timezone.now(), project=project.pk)
        return FileResponse(path.open("rb"), content_type="text/csv; charset=utf-8")


def job_payload(job: Job) -> dict[str, Any]:
    return dict(JobSerializer(job, context={"now": timezone.now()}).data)


def _project_imports(project: Project) -> Any:
    return Job.objects.filter(kind=import_job.KIND, subject=f"project:{project.pk}")


def _request_import(request: Request, project: Project, options: dict[str, Any]) -> tuple[Job, bool]:
    """Store the body and request its import, unless an earlier request with the same key did."""
    user, now = cast(User, request.user), timezone.now()
    key = request.headers.get("Idempotency-Key", "")
    if len(key) > MAX_KEY_LENGTH:
        raise ApiProblem(_("The idempotency key is too long: use up to %(n)d characters.") % {"n": MAX_KEY_LENGTH})
    limit_requests({"upload": 1}, account=user.pk, project=project.pk)
    path = _store_body(request, options.pop("name"))

    def start() -> Job:
        choices = msgspec.convert(options, scan.ImportOptions)
        return import_job.request_import(project=project, path=path, choices=choices, by=user, now=now)

    try:
        sha256 = input_files.hash_file(path)
        job, is_new = idempotency.request_once(
            user=user,
            key=key,
            content={"project": project.pk, "name": path.name, "sha256": sha256, **options},
            start=start,
            now=now,
        )
    except idempotency.IdempotencyKeyReused:
        locations.delete_upload(path)
        raise ApiProblem(
            _("This idempotency key was used for a different request. Use a new one."), status_code=409
        ) from None
    except (input_files.UnreadableFile, catalog.UnknownFormat, JobFailed) as error:
        locations.delete_upload(path)
        raise ApiProblem(str(error)) from error
    if not is_new:
        locations.delete_upload(path)
    return job, is_new


def _store_body(request: Request, name: str) -> Path:
    size = request_bodies.announced_size(request)
    try:
        return locations.save_upload(name=name, parts=request_bodies.iter_chunks(request), size=size)
    except locations.UploadTooLarge:
        raise ApiProblem(
            _("The file is too large to upload. Import it on the server with manage.py import_traces."), status_code=413
        ) from None
    except locations.UploadCutOff:
        raise ApiProblem(_("The upload is shorter than its Content-Length. Send it again."), status_code=400) from None
