"""Gaming canaries: freeze a set, let a PRM score it, and read how every version fares. Their texts stay hidden."""

from typing import Any, ClassVar, cast

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope, User
from api.problems import ApiProblem
from api.views.projects import ProjectView
from api.views.steering_orders import StrictSerializer
from machines import canary_reports
from people.roles import Action
from prm import canaries
from prm.canaries import CanariesRefused
from prm.models import PRM, CanarySet


class CanarySetSerializer(StrictSerializer):
    n = serializers.IntegerField(
        min_value=canaries.MIN_EDITS, max_value=canaries.MAX_SIZE, default=canaries.DEFAULT_SIZE, write_only=True
    )
    set = serializers.IntegerField(read_only=True)
    frozen_at = serializers.DateTimeField(read_only=True)
    n_edits = serializers.IntegerField(read_only=True)
    n_texts = serializers.IntegerField(read_only=True, help_text="Edited solutions and their originals.")
    edits = serializers.DictField(child=serializers.IntegerField(), read_only=True, help_text="Edits by kind.")
    results = serializers.ListField(
        child=serializers.JSONField(),
        read_only=True,
        help_text="One entry per PRM and judge; “report” has the figures.",
    )


class CanarySetView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.JUDGE}
    actions: ClassVar = {"GET": Action.READ, "POST": Action.TRAIN}

    @extend_schema(operation_id="read_canaries", responses=CanarySetSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """The current set of gaming canaries, and how PRMs and judges fare on it."""
        project = self.enter(request, slug).project
        row = canaries.find_set(project.pk)
        if row is None:
            raise ApiProblem("This project has no canaries. Freeze them first.")
        return Response(_describe(row) | {"results": canary_reports.describe_results(project)})

    @extend_schema(operation_id="freeze_canaries", request=CanarySetSerializer, responses={201: CanarySetSerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Freeze a new set of canaries, which replaces the current one."""
        project = self.enter(request, slug).project
        serializer = CanarySetSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        by, now = cast(User, request.user), timezone.now()
        try:
            row = canaries.freeze_canaries(project=project, by=by, now=now, n=serializer.validated_data["n"])
        except CanariesRefused as error:
            raise ApiProblem(str(error)) from error
        return Response(_describe(row) | {"results": []}, status=201)


def _describe(row: CanarySet) -> dict[str, Any]:
    return canary_reports.describe_set(row)


class CanaryScoresSerializer(StrictSerializer):
    prm = serializers.IntegerField(min_value=1, help_text="Version of the PRM.")
    job = serializers.IntegerField(read_only=True)


class CanaryScoresView(ProjectView):
    scopes: ClassVar = {"POST": Scope.JUDGE}
    actions: ClassVar = {"POST": Action.TRAIN}

    @extend_schema(
        operation_id="score_canaries", request=CanaryScoresSerializer, responses={202: CanaryScoresSerializer}
    )
    def post(self, request: Request, slug: str) -> Response:
        """Let a PRM score the canaries in the background. Judges are run with the scope `canaries`."""
        project = self.enter(request, slug).project
        serializer = CanaryScoresSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        version = serializer.validated_data["prm"]
        prm = get_object_or_404(PRM.objects.defer("weights", "trained"), project=project, version=version)
        try:
            job = canaries.request_scores(prm=prm, by=cast(User, request.user), now=timezone.now())
        except CanariesRefused as error:
            raise ApiProblem(str(error)) from error
        return Response({"prm": version, "job": job.pk}, status=202)
