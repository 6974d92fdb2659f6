"""Score traces and rank candidates with the current PRM, and upload scores in bulk."""

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, cast

from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope, User
from api import request_bodies
from api.problems import ApiProblem, refuse_with
from api.views.projects import ProjectView
from formats import integers
from outbound.sealed_secrets import SecretUnreadable
from people.roles import Action
from prm import inference, scores
from prm.backends.base import BackendError, ScorerInput
from prm.inference import TracePrediction
from prm.models import PRM
from prm.models.prm import PRMUsagePurpose
from prm.registry import NotRegistrable

_STEPS = serializers.ListField(child=serializers.CharField(allow_blank=True, trim_whitespace=False), max_length=5000)
_MAX_LINE_BYTES = 1 << 20


class TraceSerializer(serializers.Serializer[Any]):
    problem = serializers.CharField(trim_whitespace=False)
    steps = _STEPS


class ScoreRequest(serializers.Serializer[Any]):
    project = serializers.SlugField()
    purpose = serializers.ChoiceField(
        choices=PRMUsagePurpose.choices, help_text="What the scores are used for; calls are counted by purpose."
    )
    traces = serializers.ListField(child=TraceSerializer(), min_length=1, max_length=1000)


class RankRequest(serializers.Serializer[Any]):
    project = serializers.SlugField()
    purpose = serializers.ChoiceField(choices=PRMUsagePurpose.choices, default=PRMUsagePurpose.RERANK)
    problem = serializers.CharField(trim_whitespace=False)
    candidates = serializers.ListField(child=_STEPS, min_length=1, max_length=1000)


class VerdictSerializer(serializers.Serializer[TracePrediction]):
    p_correct = serializers.ListField(
        child=serializers.FloatField(), help_text="P(step correct | all earlier steps correct)."
    )
    first_error = serializers.ListField(
        child=serializers.FloatField(), help_text="P(the first error is at this step); the last entry is P(no error)."
    )
    p_right = serializers.FloatField(help_text="P(all steps correct).")
    flagged = serializers.IntegerField(allow_null=True, help_text="The first step flagged as an error, counted from 0.")


class ScoreAnswer(serializers.Serializer[Any]):
    prm = serializers.CharField()
    traces = VerdictSerializer(many=True)


class RankAnswer(serializers.Serializer[Any]):
    prm = serializers.CharField()
    order = serializers.ListField(child=serializers.IntegerField(), help_text="Indexes of the candidates, best first.")
    candidates = VerdictSerializer(many=True)


class BadLineSerializer(serializers.Serializer[Any]):
    line = serializers.IntegerField()
    reason = serializers.CharField()


class PushReport(serializers.Serializer[Any]):
    added = serializers.IntegerField(help_text="Traces that had no scores of this version.")
    known = serializers.IntegerField()
    steps = serializers.IntegerField()
    bad = serializers.IntegerField()
    bad_lines = BadLineSerializer(many=True)


class ScoreTracesView(ProjectView):
    scopes: ClassVar = {"POST": Scope.SCORE}
    actions: ClassVar = {"POST": Action.TRAIN}

    @extend_schema(operation_id="score_traces", request=ScoreRequest, responses=ScoreAnswer)
    def post(self, request: Request) -> Response:
        """Score traces with the project's current PRM: each step, the position of the first error, the step to flag."""
        data = _validate(ScoreRequest, request)
        project = self.enter(request, data["project"]).project
        traces = [ScorerInput(each["problem"], each["steps"]) for each in data["traces"]]
        try:
            prm, predictions = inference.score_traces(
                project=project, traces=traces, purpose=data["purpose"], **_actor(request)
            )
        except (inference.PRMNotUsable, BackendError, NotRegistrable, SecretUnreadable) as error:
            raise _as_problem(error) from None
        return Response(ScoreAnswer({"prm": prm.label, "traces": predictions}).data)


class RankCandidatesView(ProjectView):
    scopes: ClassVar = {"POST": Scope.SCORE}
    actions: ClassVar = {"POST": Action.TRAIN}

    @extend_schema(operation_id="rank_candidates", request=RankRequest, responses=RankAnswer)
    def post(self, request: Request) -> Response:
        """Rank solutions of one problem by the probability that all their steps are correct."""
        data = _validate(RankRequest, request)
        project = self.enter(request, data["project"]).project
        candidates = [ScorerInput(data["problem"], steps) for steps in data["candidates"]]
        try:
            prm, order, predictions = inference.rank_candidates(
                project=project, candidates=candidates, purpose=data["purpose"], **_actor(request)
            )
        except (inference.PRMNotUsable, BackendError, NotRegistrable, SecretUnreadable) as error:
            raise _as_problem(error) from None
        return Response(RankAnswer({"prm": prm.label, "order": order, "candidates": predictions}).data)


class PushScoresView(ProjectView):
    scopes: ClassVar = {"POST": Scope.SCORE}
    actions: ClassVar = {"POST": Action.BRING_IN}

    @extend_schema(
        operation_id="push_scores",
        parameters=[
            OpenApiParameter("prm", int, description="The PRM version that produced the scores.", required=True)
        ],
        request={"application/x-ndjson": OpenApiTypes.BINARY},
        responses=PushReport,
    )
    def post(self, request: Request, slug: str) -> Response:
        """Upload scores in bulk, one trace per line: `{"trace": 17, "scores": [0.98, 0.4]}`, or by `digest`. Repeated
        lines are ignored; bad lines are reported and do not affect the others."""
        project = self.enter(request, slug).project
        prm = get_object_or_404(
            PRM.objects.select_related("project").defer("weights"),
            project=project,
            version=integers.parse_integer(request.query_params.get("prm"), digits=9),
        )
        request_bodies.announced_size(request)
        try:
            report = scores.push_scores(
                prm=prm, lines=_iter_lines(request_bodies.iter_chunks(request)), **_actor(request)
            )
        except scores.NotPushable as error:
            raise ApiProblem(str(error)) from None
        bad_lines = [{"line": line, "reason": reason} for line, reason in report.bad_lines]
        content = {**vars(report), "bad_lines": bad_lines}
        if report.bad and not report.added:
            return refuse_with(_("No line has scores that can be stored; see `bad_lines`."), content)
        return Response(content)


def _iter_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
        if len(rest) > _MAX_LINE_BYTES:
            raise ApiProblem(f"A line is longer than {_MAX_LINE_BYTES >> 20} MB.")
    if rest:
        yield rest


def _validate(kind: type[serializers.Serializer[Any]], request: Request) -> dict[str, Any]:
    serializer = kind(data=request.data)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


def _actor(request: Request) -> dict[str, Any]:
    return {"by": cast(User, request.user), "now": timezone.now()}


def _as_problem(error: Exception) -> ApiProblem:
    is_conflict = isinstance(error, inference.PRMNotUsable)
    return ApiProblem(str(error), status_code=409 if is_conflict else status.HTTP_502_BAD_GATEWAY)
