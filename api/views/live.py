"""The policies and figures of live labeling: the same as on the page of leads."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope
from api.views.projects import ProjectView
from live import figures
from live.models import LivePolicy
from people.roles import Action


class LivePolicySerializer(serializers.ModelSerializer[LivePolicy]):
    class Meta:
        model = LivePolicy
        fields = (
            *("version", "family", "model", "model_digest", "tokenizer_digest", "mode", "template_digest"),
            *("n_options", "n_prefetched", "temperature", "top_p", "top_k", "min_p", "max_tokens", "step_end"),
            *("sessions_per_problem", "most_steps", "added_at", "tried_at", "opened_at", "closed_at"),
        )
        read_only_fields = fields


class LiveFiguresSerializer(serializers.Serializer[Any]):
    n_problems = serializers.IntegerField()
    n_open = serializers.IntegerField(help_text="Sessions in progress.")
    n_aside = serializers.IntegerField(help_text="Sessions that raters put aside.")
    n_ended = serializers.IntegerField(help_text="Solutions that were submitted.")
    n_requests = serializers.IntegerField(help_text="Answered requests.")
    n_failed = serializers.IntegerField(help_text="Requests without an answer.")
    n_options = serializers.IntegerField()
    n_duplicates = serializers.IntegerField()
    n_truncated = serializers.IntegerField()
    n_dropped = serializers.IntegerField(help_text="Of the latest 1,000 answers.")
    median_ms = serializers.IntegerField(allow_null=True)
    p95_ms = serializers.IntegerField(allow_null=True)
    tokens = serializers.IntegerField()
    money = serializers.DecimalField(max_digits=20, decimal_places=8)


class LiveLabelingSerializer(serializers.Serializer[Any]):
    policies = LivePolicySerializer(many=True, help_text="Latest version first.")
    figures = LiveFiguresSerializer()


class LiveLabelingView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ}
    actions: ClassVar = {"GET": Action.READ}

    @extend_schema(operation_id="read_live_labeling", responses=LiveLabelingSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """The policies that generate steps, and the figures of live labeling."""
        project = self.enter(request, slug).project
        policies = LivePolicy.objects.filter(project=project).defer("key", "template").order_by("-version")
        content = {"policies": policies, "figures": figures.load_figures(project)}
        return Response(dict(LiveLabelingSerializer(content).data))
