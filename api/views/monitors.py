"""Monitors: what people and machines detect under each visibility condition, and the shares of the conditions."""

from typing import Any, ClassVar, cast

from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope, User
from api.problems import ApiProblem
from api.views.projects import ProjectView
from api.views.steering_orders import StrictSerializer
from labeling.models import Project, VisibilityPlan
from labeling.projects import visibility
from labeling.projects.visibility import VisibilityRefused
from labeling.quality import monitors
from labeling.quality.monitors import InvalidMonitorQuery, TruthSource
from people.roles import Action

_QUERY = [
    OpenApiParameter("question", str, description="The code of a question on the whole trace. Default: the first one."),
    OpenApiParameter("yes", str, description="The answer that means yes. Default: the first answer."),
    OpenApiParameter("truth", str, enum=TruthSource.values, description="Where it is known what is true of a trace."),
    OpenApiParameter("key", str, description="With `metadata`: the field of the metadata."),
]


class ConditionsSerializer(StrictSerializer):
    reasoning_share = serializers.FloatField(min_value=0, max_value=0.9, help_text="Shown the reasoning only.")
    actions_share = serializers.FloatField(min_value=0, max_value=0.9, help_text="Shown the actions only.")


class MonitorsView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ, "PUT": Scope.JUDGE, "DELETE": Scope.JUDGE}
    actions: ClassVar = {"GET": Action.READ, "PUT": Action.LICENSE, "DELETE": Action.LICENSE}

    @extend_schema(operation_id="read_monitors", parameters=_QUERY, responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, slug: str) -> Response:
        """TPR, TNR and g-mean² of people and of each machine under each visibility condition, with intervals, and the
        setting of the conditions that is in force, or the latest one."""
        project = self.enter(request, slug).project
        given = {name: request.query_params.get(name, "") for name in ("question", "yes", "truth", "key")}
        try:
            query = monitors.make_query(project, **given)
        except InvalidMonitorQuery as error:
            raise ApiProblem(str(error)) from error
        found = monitors.describe_monitors(project, query) if query else {"monitors": []}
        return Response({"conditions": _describe_plan(project), **found})

    @extend_schema(operation_id="set_conditions", request=ConditionsSerializer, responses=OpenApiTypes.OBJECT)
    def put(self, request: Request, slug: str) -> Response:
        """Show only the reasoning and only the actions to shares of the work, drawn at random."""
        project = self.enter(request, slug).project
        serializer = ConditionsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        try:
            visibility.start_visibility(
                project=project, by=cast(User, request.user), now=timezone.now(), **serializer.validated_data
            )
        except VisibilityRefused as error:
            raise ApiProblem(str(error)) from error
        return Response({"conditions": _describe_plan(project)})

    @extend_schema(operation_id="stop_conditions", responses={204: None})
    def delete(self, request: Request, slug: str) -> Response:
        """Show everything from now on. Traces already assigned keep their condition."""
        plan = visibility.find_plan(self.enter(request, slug).project.pk)
        if plan is not None:
            visibility.stop_visibility(plan=plan, by=cast(User, request.user), now=timezone.now())
        return Response(status=204)


def _describe_plan(project: Project) -> dict[str, Any] | None:
    plan: VisibilityPlan | None = visibility.find_plan(project.pk)
    if plan is None:
        return None
    names = "reasoning_share", "actions_share", "both_share", "seed", "began_at", "ended_at"
    return {name: getattr(plan, name) for name in names}
