"""Suggestions: the setting, and what seeing a machine's labels does to raters."""

from typing import Any, ClassVar, cast

from django.http import Http404
from django.shortcuts import get_object_or_404
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
from labeling.models import Project, Rater, SuggestionPlan
from labeling.models.rater import RaterKind
from labeling.models.suggestion import SuggestionEnd
from labeling.projects import suggestions
from labeling.projects.suggestions import SuggestionsRefused
from labeling.quality import suggestion_effects
from people.roles import Action


class SuggestionsSerializer(StrictSerializer):
    machine = serializers.IntegerField(min_value=1, help_text="The id of the machine rater.")
    reveal_share = serializers.FloatField(min_value=0, max_value=0.9, help_text="Shown after the first answer.")
    suggest_share = serializers.FloatField(min_value=0, max_value=0.9, help_text="Shown before the answer.")


_PLAN_ID = serializers.IntegerField(min_value=1, max_value=2**62)


class SuggestionsView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ, "PUT": Scope.JUDGE, "DELETE": Scope.JUDGE}
    actions: ClassVar = {"GET": Action.READ, "PUT": Action.LICENSE, "DELETE": Action.LICENSE}

    @extend_schema(
        operation_id="get_suggestions",
        parameters=[OpenApiParameter("plan", OpenApiTypes.INT64, description="The id of an earlier setting.")],
        responses=OpenApiTypes.OBJECT,
    )
    def get(self, request: Request, slug: str) -> Response:
        """The setting in force, or the latest one, with its effects, and the ids of all settings. With `plan`, the
        effects of that setting. 404 if suggestions have never been on."""
        chosen = request.query_params.get("plan")
        plan = None if chosen is None else _PLAN_ID.run_validation(chosen)
        return Response(_describe(self.enter(request, slug).project, plan))

    @extend_schema(operation_id="set_suggestions", request=SuggestionsSerializer, responses=OpenApiTypes.OBJECT)
    def put(self, request: Request, slug: str) -> Response:
        """Show a machine's labels to shares of the work, drawn at random."""
        project = self.enter(request, slug).project
        serializer = SuggestionsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = dict(serializer.validated_data)
        machine = get_object_or_404(Rater, project=project, kind=RaterKind.MACHINE, pk=values.pop("machine"))
        try:
            suggestions.start_suggestions(
                project=project, machine=machine, by=cast(User, request.user), now=timezone.now(), **values
            )
        except SuggestionsRefused as error:
            raise ApiProblem(str(error)) from error
        return Response(_describe(project))

    @extend_schema(operation_id="stop_suggestions", responses={204: None})
    def delete(self, request: Request, slug: str) -> Response:
        """Show the labels to no one from now on."""
        plan = _find_plan(self.enter(request, slug).project)
        by = cast(User, request.user)
        suggestions.stop_suggestions(plan=plan, because=SuggestionEnd.LEAD, by=by, now=timezone.now())
        return Response(status=204)


def _find_plan(project: Project, chosen: int | None = None) -> SuggestionPlan:
    plan = suggestions.find_plan(project.pk, chosen)
    if plan is None:
        raise Http404
    return plan


def _describe(project: Project, chosen: int | None = None) -> dict[str, Any]:
    return suggestion_effects.describe_effects(_find_plan(project, chosen))
