"""Traces in: the body is the file, the query says how to read it."""

from pathlib import Path
from typing import Any, ClassVar, cast

import msgspec
from django.http import FileResponse, Http404
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from accounts.models import Scope, User
from api import bodies, repeats
from api.problems import Problem
from api.serializers import ImportChoices, JobSerializer
from api.views.door import ProjectView
from jobs import work
from jobs.failures import Failed
from jobs.models import Job
from labeling.importing import bad_lines, bringing, files, uploads
from labeling.importing.readers import formats
from labeling.models import Project
from people.roles import Action

SHOWN = 100
KEY = OpenApiParameter(
    "Idempotency-Key", str, OpenApiParameter.HEADER, description="Sent again, nothing is done twice."
)


class Imports(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.BRING_IN}
    actions: ClassVar = {"GET": Action.READ, "POST": Action.BRING_IN}

    @extend_schema(operation_id="list_imports", responses=JobSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The newest imports of the project."""
        project = self.enter(request, slug).project
        return Response([told(job) for job in _imports(project).order_by("-pk")[:SHOWN]])

    @extend_schema(
        operation_id="bring_traces_in",
        parameters=[ImportChoices, KEY],
        request={"application/x-ndjson": OpenApiTypes.BINARY, "application/octet-stream": OpenApiTypes.BINARY},
        responses={202: JobSerializer, 200: JobSerializer},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Bring a file in. Strict unless told otherwise: one bad line, and nothing comes in. Follow the import, whose
        report names each bad line."""
        project = self.enter(request, slug).project
        choices = ImportChoices(data=request.query_params)
        choices.is_valid(raise_exception=True)
        asked = _ask(request, project, dict(choices.validated_data))
        where = reverse("api:import", args=[slug, asked.job.pk], request=request)
        status = 202 if asked.is_new else 200
        return Response(told(asked.job), status=status, headers={"Location": where})


class OneImport(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ, "DELETE": Scope.BRING_IN}
    actions: ClassVar = {"GET": Action.READ, "DELETE": Action.BRING_IN}

    @extend_schema(operation_id="follow_import", responses=JobSerializer)
    def get(self, request: Request, slug: str, job: int) -> Response:
        """How far an import is, and its report."""
        project = self.enter(request, slug).project
        return Response(told(get_object_or_404(_imports(project), pk=job)))

    @extend_schema(operation_id="cancel_import", responses={202: JobSerializer})
    def delete(self, request: Request, slug: str, job: int) -> Response:
        """End an import after the chunk that it is at. What is in stays, and asking again goes on from there."""
        row = get_object_or_404(_imports(self.enter(request, slug).project), pk=job)
        work.cancel(job=row, by=cast(User, request.user), now=timezone.now())
        row.refresh_from_db()
        return Response(told(row), status=202)


class BadLines(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ}
    actions: ClassVar = {"GET": Action.READ}

    @extend_schema(operation_id="read_bad_lines", responses={(200, "text/csv"): OpenApiTypes.BINARY})
    def get(self, request: Request, slug: str, job: int) -> FileResponse:
        """All bad lines of an import as a table: line, column, reason."""
        row = get_object_or_404(_imports(self.enter(request, slug).project), pk=job)
        path = bad_lines.of_job(row.pk)
        if not path.exists():
            raise Http404
        return FileResponse(path.open("rb"), content_type="text/csv; charset=utf-8")


def told(job: Job) -> dict[str, Any]:
    return dict(JobSerializer(job, context={"now": timezone.now()}).data)


def _imports(project: Project) -> Any:
    return Job.objects.filter(kind=bringing.KIND, subject=f"project:{project.pk}")


def _ask(request: Request, project: Project, said: dict[str, Any]) -> repeats.Asked:
    """Keep the body, and ask for its import unless this very request was made before."""
    user, key, now = cast(User, request.user), request.headers.get("Idempotency-Key", "")[:100], timezone.now()
    path = _keep(request, said.pop("name"))
    try:
        asked = repeats.once(
            user=user,
            key=key,
            fingerprint=repeats.fingerprint(project=project.pk, name=path.name, sha256=files.sha256(path), **said),
            ask=lambda: bringing.ask(
                project=project, path=path, choices=msgspec.convert(said, bringing.Choices), by=user, now=now
            ),
            now=now,
        )
    except repeats.KeyIsTaken:
        uploads.forget(path)
        raise Problem(
            _("This idempotency key stands for another request: choose a new one."), status_code=409
        ) from None
    except (files.Unreadable, formats.UnknownFormat, Failed) as error:
        uploads.forget(path)
        raise Problem(str(error)) from error
    if not asked.is_new:
        uploads.forget(path)
    return asked


def _keep(request: Request, name: str) -> Path:
    size = bodies.size_of(request)
    try:
        return uploads.keep(name=name, parts=bodies.pieces(request), size=size)
    except uploads.TooBig:
        raise Problem(_("The file is larger than what is taken over the network."), status_code=413) from None
    except uploads.CutOff:
        raise Problem(_("Less came than was announced: send it again."), status_code=400) from None
