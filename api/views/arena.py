"""The arena: its state, and the hard negatives that raters made and checked."""

from itertools import islice
from typing import Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope
from api.views.projects import ProjectView
from people.roles import Action
from prm import arena

_MOST_ROWS = 1000


class HardNegativeSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    problem = serializers.CharField()
    steps = serializers.ListField(child=serializers.CharField(), help_text="Up to the edited step, which is last.")
    label = serializers.IntegerField(  # type: ignore[assignment]  # ProcessBench's name for the first error
        help_text="The position of the edited step, which is the first error."
    )
    original_step = serializers.CharField()
    words_changed = serializers.IntegerField()
    why_wrong = serializers.CharField(help_text="The author’s reason.")
    prm = serializers.CharField(help_text="The PRM that believed it.")
    p_right_before = serializers.FloatField()
    p_right_after = serializers.FloatField()
    author = serializers.CharField(help_text="Pseudonym.")
    n_checks = serializers.IntegerField()
    n_wrong = serializers.IntegerField(help_text="Blind checks that found the step wrong.")
    made_at = serializers.DateTimeField()


class HardNegativesView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ}
    actions: ClassVar = {"GET": Action.TAKE_OUT}

    @extend_schema(
        operation_id="list_hard_negatives",
        parameters=[OpenApiParameter("after", OpenApiTypes.INT64, description="The number of the last one you have.")],
        responses=HardNegativeSerializer(many=True),
    )
    def get(self, request: Request, slug: str) -> Response:
        """Wrong steps that a PRM believed and two people confirmed blind, oldest first: at most 1,000 after the number
        `after` (the number in the id)."""
        project = self.enter(request, slug).project
        after = serializers.IntegerField(min_value=0, max_value=2**62).run_validation(
            request.query_params.get("after", "0")
        )
        return Response(list(islice(arena.export_hard_negatives(project.pk, after=after), _MOST_ROWS)))
