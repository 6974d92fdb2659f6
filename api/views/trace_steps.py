"""Split and merge the steps of a trace: the same as on its page."""

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
from formats.records import StepChange
from formats.step_changes import MAX_STEPS
from labeling.models import Trace
from labeling.traces.changed_steps import change_trace_steps
from labeling.traces.record_changes import CannotChangeSteps
from people.roles import Action

_MAX_INTEGER = 2**31 - 1


class StepChangeSerializer(serializers.Serializer[Any]):
    position = serializers.IntegerField(min_value=0, max_value=_MAX_INTEGER, help_text="The step, from 0.")
    cuts = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_MAX_INTEGER),
        default=list,
        max_length=MAX_STEPS,
        help_text="How many characters of the step’s text are before each cut.",
    )
    merges = serializers.BooleanField(default=False, help_text="Whether to merge the step with the one before it.")


class StepChangesSerializer(StrictSerializer):
    changes = serializers.ListField(child=StepChangeSerializer(), max_length=MAX_STEPS)


class ChangedTraceSerializer(serializers.Serializer[Any]):
    trace = serializers.IntegerField(help_text="The new trace.")
    n_steps = serializers.IntegerField()


class TraceStepsView(ProjectView):
    scopes: ClassVar = {"POST": Scope.BRING_IN}
    actions: ClassVar = {"POST": Action.BRING_IN}

    @extend_schema(
        operation_id="change_trace_steps", request=StepChangesSerializer, responses={201: ChangedTraceSerializer}
    )
    def post(self, request: Request, slug: str, trace: int) -> Response:
        """Split and merge steps of a trace that no one has opened or rated. They make a new trace, and the old one is
        withdrawn."""
        project = self.enter(request, slug).project
        row = get_object_or_404(Trace.objects.select_related("project", "problem", "source"), project=project, pk=trace)
        serializer = StepChangesSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        changes = [
            StepChange(change["position"], tuple(change["cuts"]), change["merges"])
            for change in serializer.validated_data["changes"]
        ]
        try:
            new = change_trace_steps(trace=row, changes=changes, by=cast(User, request.user), now=timezone.now())
        except CannotChangeSteps as error:
            raise ApiProblem(str(error)) from error
        return Response({"trace": new.pk, "n_steps": new.n_steps}, status=201)
