"""List the consensus of a project, of all raters or of chosen ones."""

from collections.abc import Sequence
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope
from api.views.projects import RATER_CHOICE, ProjectView, find_raters
from labeling.models import Consensus, Project
from labeling.quality import chosen_raters, consensus
from labeling.quality.chosen_raters import RaterChoice
from labeling.quality.consensus import RevisionDraft
from people.roles import Action

MAX_LISTED = 500
_MAX_ID = 2**63 - 1
_OPTIONS = ("only", "without")


class ConsensusListOptions(serializers.Serializer[Any]):
    cursor = serializers.IntegerField(
        default=0, min_value=0, max_value=_MAX_ID, help_text="`next_cursor` of the previous page."
    )
    limit = serializers.IntegerField(default=100, min_value=1, max_value=MAX_LISTED)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse unknown options, because ignoring them would list the consensus of other raters."""
        unknown = sorted(set(self.initial_data) - {*self.fields, *_OPTIONS})
        if unknown:
            raise serializers.ValidationError({name: ["Unknown option."] for name in unknown})
        return attrs


class ListedLabel(serializers.Serializer[Any]):
    step = serializers.IntegerField(help_text="Position of the step, from 0.")
    option = serializers.IntegerField(help_text="0 for the step itself, other numbers for alternatives.")
    rating = serializers.IntegerField(min_value=-1, max_value=1)
    confidence = serializers.FloatField()


class ListedConsensus(serializers.Serializer[Any]):
    trace = serializers.IntegerField()
    decided_by = serializers.ChoiceField(
        choices=["raters", "person"], help_text="`person` if a person decided the trace, regardless of who labeled it."
    )
    is_determined = serializers.BooleanField(
        help_text="False if the labels of the chosen raters determine no first error. The other fields are then null."
    )
    is_inferred = serializers.BooleanField(
        help_text="Whether labels of other raters were left out, so that the consensus was inferred again."
    )
    first_error = serializers.IntegerField(allow_null=True, help_text="Position of the step, from 0; null for none.")
    n_votes = serializers.IntegerField(allow_null=True)
    confidence = serializers.FloatField(allow_null=True, help_text="Share of the votes; null for a person's decision.")
    probability = serializers.FloatField(allow_null=True, help_text="From the rater model; null if there is none.")
    labels = ListedLabel(many=True, allow_null=True)


class ConsensusPage(serializers.Serializer[Any]):
    only = serializers.ListField(child=serializers.CharField())
    without = serializers.ListField(child=serializers.CharField())
    traces = ListedConsensus(many=True)
    next_cursor = serializers.IntegerField(allow_null=True, help_text="Null on the last page.")


class ConsensusListView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ}
    actions: ClassVar = {"GET": Action.READ}

    @extend_schema(
        operation_id="list_consensus", parameters=[*RATER_CHOICE, ConsensusListOptions], responses=ConsensusPage
    )
    def get(self, request: Request, slug: str) -> Response:
        """The consensus of each settled or decided trace, in the order of their ids. With `only` or `without`, it is
        inferred again from the labels of the chosen raters, by the votes that remain. Nothing is changed in the
        project."""
        project = self.enter(request, slug).project
        options = ConsensusListOptions(data=request.query_params)
        options.is_valid(raise_exception=True)
        named = {name: request.query_params.getlist(name) for name in _OPTIONS}
        found = {name: find_raters(project, names) for name, names in named.items()}
        only = [rater.labeler for rater in found["only"]] if named["only"] else None
        choice = RaterChoice(only, [rater.labeler or "" for rater in found["without"]])
        limit = options.validated_data["limit"]
        rows = consensus.current_revisions(project_id=project.pk).filter(trace__gt=options.validated_data["cursor"])
        page = list(rows.order_by("trace")[:limit])
        return Response(
            {
                **{name: sorted(names) for name, names in named.items()},
                "traces": _describe_page(project, page, choice),
                "next_cursor": page[-1].trace_id if len(page) == limit else None,
            }
        )


def _describe_page(project: Project, page: Sequence[Consensus], choice: RaterChoice) -> list[dict[str, Any]]:
    drafts: dict[int, RevisionDraft | None] = {}
    if not choice.is_everybody:
        traces = [row.trace_id for row in page]
        affected = list(chosen_raters.select_affected(project=project, choice=choice).filter(trace__in=traces))
        inferred = chosen_raters.infer_consensus(project=project, revisions=affected, choice=choice)
        drafts = {each.current.trace_id: each.draft for each in inferred}
    return [_describe_inferred(row, drafts[row.trace_id]) if row.trace_id in drafts else _describe(row) for row in page]


def _describe(row: Consensus) -> dict[str, Any]:
    return {
        "trace": row.trace_id,
        "decided_by": row.source,
        "is_determined": True,
        "is_inferred": False,
        "first_error": row.first_error,
        "n_votes": row.n_votes,
        "confidence": row.confidence,
        "probability": row.probability,
        "labels": _describe_labels(row.labels),
    }


def _describe_inferred(row: Consensus, draft: RevisionDraft | None) -> dict[str, Any]:
    about = {"trace": row.trace_id, "decided_by": row.source, "is_determined": draft is not None, "is_inferred": True}
    if draft is None:
        return about | dict.fromkeys(("first_error", "n_votes", "confidence", "probability", "labels"))
    return {
        **about,
        "first_error": draft.first_error,
        "n_votes": draft.n_votes,
        "confidence": draft.confidence,
        "probability": draft.probability,
        "labels": _describe_labels(draft.labels),
    }


def _describe_labels(labels: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    return [
        {"step": step, "option": option, "rating": rating, "confidence": confidence}
        for step, option, rating, confidence, *_ in labels
    ]
