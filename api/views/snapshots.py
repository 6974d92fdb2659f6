"""Order snapshots, follow their progress and download their files."""

from typing import Any, ClassVar, cast

import msgspec
from django.http import Http404
from django.http.response import HttpResponseBase
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
from api.problems import ApiProblem
from api.views.projects import ProjectView
from exports import deliveries, file_response, snapshots
from exports.models import Snapshot, SnapshotFile, SnapshotPurpose
from exports.orders import ENDINGS, InvalidOrder, SnapshotOrder
from formats.catalog import OUTPUT_FORMATS
from people.roles import Action

MAX_LISTED = 100
RANGE_HEADER = OpenApiParameter(
    "Range", str, OpenApiParameter.HEADER, description="bytes=1000- resumes an interrupted download."
)


class OrderSerializer(serializers.Serializer[Any]):
    """Snapshot options, the same as those of `manage.py build_snapshot`."""

    name = serializers.SlugField(
        required=False, max_length=100, help_text="Default: the next name in the project’s sequence."
    )
    purpose = serializers.ChoiceField(default=SnapshotPurpose.ARCHIVE.value, choices=SnapshotPurpose.choices)
    formats = serializers.ListField(child=serializers.ChoiceField(choices=list(OUTPUT_FORMATS)), min_length=1)
    ending = serializers.ChoiceField(default="jsonl", choices=list(ENDINGS))
    filters = serializers.DictField(default=dict, help_text="Which submissions to include.")
    rule = serializers.DictField(
        default=dict,
        help_text="How to treat neutral ratings, corrected steps, and (`label_set`) steps after the first error.",
    )
    validation = serializers.FloatField(default=0.0, min_value=0, max_value=1)
    test = serializers.FloatField(default=0.0, min_value=0, max_value=1)
    without_duplicates = serializers.BooleanField(default=False)
    has_labeler_names = serializers.BooleanField(
        default=False, help_text="Export imported labelers under the names in their files. Default: pseudonyms."
    )
    taken_in = serializers.ListField(child=serializers.CharField(max_length=100), default=list)
    reason = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=2000,
        help_text="Reason for including data that is excluded by default (`taken_in`).",
    )
    deliver_to = serializers.ListField(
        child=serializers.CharField(max_length=100),
        default=list,
        help_text="Names of configured destinations to deliver to.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse unknown keys: ignoring a misspelled one would include more data than ordered."""
        unknown = sorted(set(self.initial_data) - set(self.fields))
        if unknown:
            raise serializers.ValidationError({name: [_("Unknown key.")] for name in unknown})
        return attrs


class FileSerializer(serializers.ModelSerializer[SnapshotFile]):
    class Meta:
        model = SnapshotFile
        fields = ("name", "format", "split", "rows", "size", "sha256")


class DeliverySerializer(serializers.Serializer[deliveries.DeliveryStatus]):
    destination = serializers.CharField(source="delivery.destination")
    address = serializers.CharField(source="delivery.address")
    state = serializers.CharField(help_text="queued, running, done, failed or cancelled")
    done = serializers.IntegerField(help_text="Delivered files, out of `total`.")
    total = serializers.IntegerField(allow_null=True)
    failure = serializers.CharField()
    delivered_at = serializers.DateTimeField(source="delivery.delivered_at", allow_null=True)


class SnapshotSerializer(serializers.Serializer[Snapshot]):
    name = serializers.CharField()
    purpose = serializers.CharField()
    state = serializers.ChoiceField(choices=["building", "built", "failed", "cancelled"])
    done = serializers.IntegerField(help_text="Written manifest rows, out of `total`.")
    total = serializers.IntegerField(allow_null=True)
    failure = serializers.CharField()
    order = serializers.DictField()
    asked_at = serializers.DateTimeField()
    frozen_at = serializers.DateTimeField(allow_null=True)
    built_at = serializers.DateTimeField(allow_null=True)
    files = FileSerializer(many=True)
    deliveries = DeliverySerializer(many=True)


class SnapshotListView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.TAKE_OUT}
    actions: ClassVar = {"GET": Action.TAKE_OUT, "POST": Action.TAKE_OUT}

    @extend_schema(operation_id="list_snapshots", responses=SnapshotSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The newest snapshots of the project."""
        rows = _project_snapshots(self.enter(request, slug).project.pk).order_by("-pk")[:MAX_LISTED]
        return Response([_snapshot_payload(each) for each in rows])

    @extend_schema(operation_id="order_snapshot", request=OrderSerializer, responses={202: SnapshotSerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Order a snapshot. Its contents are frozen immediately; its files are written in the background. The name
        makes the request idempotent: a second order with the same name is refused (409)."""
        project = self.enter(request, slug).project
        serializer = OrderSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        order = dict(serializer.validated_data)
        name = order.pop("name", "") or snapshots.suggest_name(project)
        if Snapshot.objects.filter(project=project, name=name).exists():
            raise ApiProblem(f"A snapshot named {name} already exists.", status_code=409)
        try:
            snapshot = snapshots.order_snapshot(
                project=project,
                name=name,
                purpose=order.pop("purpose"),
                order=msgspec.convert(order, SnapshotOrder),
                by=cast(User, request.user),
                now=timezone.now(),
            )
        except (InvalidOrder, msgspec.ValidationError) as error:
            raise ApiProblem(str(error)) from error
        location = reverse("api:snapshot", args=[slug, snapshot.name], request=request)
        return Response(_snapshot_payload(snapshot), status=202, headers={"Location": location})


class SnapshotDetailView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ, "DELETE": Scope.TAKE_OUT}
    actions: ClassVar = {"GET": Action.TAKE_OUT, "DELETE": Action.TAKE_OUT}

    @extend_schema(operation_id="follow_snapshot", responses=SnapshotSerializer)
    def get(self, request: Request, slug: str, name: str) -> Response:
        """The progress of a snapshot, and its files with their checksums."""
        rows = _project_snapshots(self.enter(request, slug).project.pk)
        return Response(_snapshot_payload(get_object_or_404(rows, name=name)))

    @extend_schema(operation_id="cancel_snapshot", responses={202: SnapshotSerializer})
    def delete(self, request: Request, slug: str, name: str) -> Response:
        """Cancel the build of a snapshot. A finished snapshot is kept."""
        snapshot = get_object_or_404(_project_snapshots(self.enter(request, slug).project.pk), name=name)
        snapshots.cancel_snapshot(snapshot=snapshot, by=cast(User, request.user), now=timezone.now())
        snapshot.refresh_from_db()
        return Response(_snapshot_payload(snapshot), status=202)


class SnapshotFileView(ProjectView):
    scopes: ClassVar = {"GET": Scope.TAKE_OUT}
    actions: ClassVar = {"GET": Action.TAKE_OUT}

    @extend_schema(
        operation_id="fetch_file",
        parameters=[RANGE_HEADER],
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, slug: str, name: str, file: str) -> HttpResponseBase:
        """Download a file of a finished snapshot, or a range of it. The ETag is its checksum."""
        rows = _project_snapshots(self.enter(request, slug).project.pk)
        snapshot = get_object_or_404(rows, name=name, built_at__isnull=False)
        row = snapshots.find_file(snapshot, file)
        if row is None:
            raise Http404
        snapshots.log_download(snapshot=snapshot, file=row.name, by=cast(User, request.user), now=timezone.now())
        path = snapshots.snapshot_folder(snapshot) / row.name
        kind = "application/octet-stream"
        return file_response.send_file(request._request, path, sha256=row.sha256, name=path.name, content_type=kind)


def _project_snapshots(project_id: int) -> Any:
    return Snapshot.objects.filter(project_id=project_id).select_related("manifest")


def _snapshot_payload(snapshot: Snapshot) -> dict[str, Any]:
    status = snapshots.load_snapshot_status(snapshot)
    data = {
        **{name: getattr(snapshot, name) for name in ("name", "purpose", "order", "asked_at", "frozen_at", "built_at")},
        **{name: getattr(status, name) for name in ("state", "done", "total", "failure")},
        "files": snapshot.files.order_by("name"),
        "deliveries": deliveries.list_delivery_statuses(snapshot),
    }
    return dict(SnapshotSerializer(data).data)  # type: ignore[arg-type]  # its fields are read by name
