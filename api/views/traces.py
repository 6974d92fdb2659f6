"""List the traces that a PRM can score, with their texts."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.db.models import Q
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope
from api.views.projects import ProjectView
from labeling import queue
from labeling.models import Trace
from people import roles
from people.roles import Action
from prm import scores
from prm.models import PRM

MAX_LISTED = 500
_MAX_ID = 2**63 - 1


class TraceListOptions(serializers.Serializer[Any]):
    prm = serializers.IntegerField(
        required=False, min_value=1, max_value=2**31 - 1, help_text="Only traces that this version has not scored."
    )
    cursor = serializers.IntegerField(
        default=0, min_value=0, max_value=_MAX_ID, help_text="`next_cursor` of the previous page."
    )
    limit = serializers.IntegerField(default=100, min_value=1, max_value=MAX_LISTED)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse unknown options, because ignoring them would list more."""
        unknown = sorted(set(self.initial_data) - set(self.fields))
        if unknown:
            raise serializers.ValidationError({name: ["Unknown option."] for name in unknown})
        return attrs


class ListedStep(serializers.Serializer[Any]):
    text = serializers.CharField()
    is_rateable = serializers.BooleanField(help_text="False for context; its score is null.")


class ListedTrace(serializers.Serializer[Any]):
    id = serializers.IntegerField(help_text="The value of `trace` in a line of scores.")
    digest = serializers.CharField(
        help_text="Can be used instead of `trace` in a line of scores. The same in every installation."
    )
    problem = serializers.CharField()
    domain = serializers.CharField()
    steps = ListedStep(many=True)
    ref = serializers.CharField(help_text="Name of the trace in the imported file.")
    file = serializers.CharField(help_text="The name of the imported file.")
    tags = serializers.ListField(child=serializers.CharField())
    metadata = serializers.DictField(help_text="Further fields of the imported record.")


class TracePage(serializers.Serializer[Any]):
    traces = ListedTrace(many=True)
    next_cursor = serializers.IntegerField(allow_null=True, help_text="Null on the last page.")


class TraceListView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ}
    actions: ClassVar = {"GET": Action.READ}

    @extend_schema(operation_id="list_traces", parameters=[TraceListOptions], responses=TracePage)
    def get(self, request: Request, slug: str) -> Response:
        """The traces that a PRM can score, in the order of their ids: labeled or not, the held-out set included.
        Withdrawn traces and live ones are left out. A reviewer gets of each pair the half that they have opened."""
        membership = self.enter(request, slug)
        project = membership.project
        options = TraceListOptions(data=request.query_params)
        options.is_valid(raise_exception=True)
        wanted = options.validated_data
        prm = get_object_or_404(PRM, project=project, version=wanted["prm"]) if "prm" in wanted else None
        page = scores.list_scorable_traces(
            project=project,
            unscored_by=prm,
            after=wanted["cursor"],
            size=wanted["limit"],
            condition=Q() if roles.may_read_both_halves(membership) else queue.may_read_traces(membership.user),
        )
        facts = _load_facts([text.trace for _digest, text in page])
        traces = [
            {
                **facts[text.trace],
                "id": text.trace,
                "digest": digest,
                "problem": text.problem,
                "domain": text.domain,
                "steps": [
                    {"text": step, "is_rateable": is_rateable}
                    for step, is_rateable in zip(text.steps, text.is_rateable, strict=True)
                ],
            }
            for digest, text in page
        ]
        next_cursor = traces[-1]["id"] if len(traces) == wanted["limit"] else None
        return Response({"traces": traces, "next_cursor": next_cursor})


def _load_facts(traces: Sequence[int]) -> dict[int, dict[str, Any]]:
    rows = Trace.objects.filter(pk__in=traces).select_related("source").prefetch_related("tags")
    return {
        row.pk: {
            "ref": row.ref,
            "file": row.source.name if row.source else "",
            "tags": sorted(tag.name for tag in row.tags.all()),
            "metadata": row.metadata,
        }
        for row in rows
    }
