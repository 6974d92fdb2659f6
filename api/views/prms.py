"""The current PRM for programs: judge traces, rank candidates, send scores in bulk."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, cast

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope, User
from api import request_bodies
from api.problems import ApiProblem
from api.views.project_view import ProjectView
from formats import integers
from people.roles import Action
from prm import inference, score_push
from prm.backends.base import BackendError, ScorerInput
from prm.inference import TracePrediction
from prm.models import PRM
from prm.models.prm import PRMUsagePurpose
from prm.registry import NotRegistrable
from prm.secret_box import SecretUnreadable

_STEPS = serializers.ListField(child=serializers.CharField(allow_blank=True, trim_whitespace=False), max_length=5000)
_MAX_LINE_BYTES = 1 << 20


class TraceSerializer(serializers.Serializer[Any]):
    problem = serializers.CharField(trim_whitespace=False)
    steps = _STEPS


class ScoreRequest(serializers.Serializer[Any]):
    project = serializers.SlugField()
    purpose = serializers.ChoiceField(
        choices=PRMUsagePurpose.choices, help_text="What the answer is for; calls are counted."
    )
    traces = serializers.ListField(child=TraceSerializer(), min_length=1, max_length=1000)


class RankRequest(serializers.Serializer[Any]):
    project = serializers.SlugField()
    purpose = serializers.ChoiceField(choices=PRMUsagePurpose.choices, default=PRMUsagePurpose.RERANK)
    problem = serializers.CharField(trim_whitespace=False)
    candidates = serializers.ListField(child=_STEPS, min_length=1, max_length=1000)


class VerdictSerializer(serializers.Serializer[TracePrediction]):
    p_correct = serializers.ListField(child=serializers.FloatField(), help_text="P(step right | all before right).")
    first_error = serializers.ListField(
        child=serializers.FloatField(), help_text="P(the first error is at this step); the last one: P(there is none)."
    )
    p_right = serializers.FloatField(help_text="P(all steps right).")
    flagged = serializers.IntegerField(allow_null=True, help_text="The first step that is held for wrong, from 0.")


class ScoreAnswer(serializers.Serializer[Any]):
    prm = serializers.CharField()
    traces = VerdictSerializer(many=True)


class RankAnswer(serializers.Serializer[Any]):
    prm = serializers.CharField()
    order = serializers.ListField(child=serializers.IntegerField(), help_text="Places of the candidates, best first.")
    candidates = VerdictSerializer(many=True)


class BadLineSerializer(serializers.Serializer[Any]):
    line = serializers.IntegerField()
    reason = serializers.CharField()


class PushReport(serializers.Serializer[Any]):
    added = serializers.IntegerField(help_text="Traces that this version had not scored yet.")
    known = serializers.IntegerField()
    steps = serializers.IntegerField()
    bad = serializers.IntegerField()
    bad_lines = BadLineSerializer(many=True)


class ScoreTracesView(ProjectView):
    scopes: ClassVar = {"POST": Scope.SCORE}
    actions: ClassVar = {"POST": Action.TRAIN}

    @extend_schema(operation_id="score_traces", request=ScoreRequest, responses=ScoreAnswer)
    def post(self, request: Request) -> Response:
        """What the project's current PRM says of traces: each step, where the first error is, which step to flag."""
        asked = _validate(ScoreRequest, request)
        project = self.enter(request, asked["project"]).project
        traces = [ScorerInput(each["problem"], each["steps"]) for each in asked["traces"]]
        try:
            prm, found = inference.score_traces(
                project=project, traces=traces, purpose=asked["purpose"], **_actor(request)
            )
        except (inference.PRMNotUsable, BackendError, NotRegistrable, SecretUnreadable) as refused:
            raise _as_problem(refused) from None
        return Response({"prm": prm.label, "traces": _verdict_payloads(found)})


class RankCandidatesView(ProjectView):
    scopes: ClassVar = {"POST": Scope.SCORE}
    actions: ClassVar = {"POST": Action.TRAIN}

    @extend_schema(operation_id="rank_candidates", request=RankRequest, responses=RankAnswer)
    def post(self, request: Request) -> Response:
        """The candidates of one problem, the one that is likeliest right throughout first."""
        asked = _validate(RankRequest, request)
        project = self.enter(request, asked["project"]).project
        traces = [ScorerInput(asked["problem"], steps) for steps in asked["candidates"]]
        try:
            prm, order, found = inference.rank_candidates(
                project=project, candidates=traces, purpose=asked["purpose"], **_actor(request)
            )
        except (inference.PRMNotUsable, BackendError, NotRegistrable, SecretUnreadable) as refused:
            raise _as_problem(refused) from None
        return Response({"prm": prm.label, "order": order, "candidates": _verdict_payloads(found)})


class PushScoresView(ProjectView):
    scopes: ClassVar = {"POST": Scope.SCORE}
    actions: ClassVar = {"POST": Action.BRING_IN}

    @extend_schema(
        operation_id="push_scores",
        parameters=[OpenApiParameter("prm", int, description="The version that the scores are of.", required=True)],
        request={"application/x-ndjson": OpenApiTypes.BINARY},
        responses=PushReport,
    )
    def post(self, request: Request, slug: str) -> Response:
        """Scores in bulk, one trace a line: `{"trace": 17, "scores": [0.98, 0.4]}`, or by `digest`. A line that came
        before adds nothing; one that cannot be used is reported and leaves the others alone."""
        project = self.enter(request, slug).project
        found = PRM.objects.select_related("project").defer("weights")
        prm = get_object_or_404(
            found, project=project, version=integers.parse_integer(request.query_params.get("prm"), digits=9)
        )
        request_bodies.announced_size(request)
        try:
            report = score_push.push_scores(
                prm=prm, lines=_iter_lines(request_bodies.iter_chunks(request)), **_actor(request)
            )
        except score_push.NotPushable as refused:
            raise ApiProblem(str(refused)) from None
        told = [{"line": line, "reason": reason} for line, reason in report.bad_lines]
        return Response({**vars(report), "bad_lines": told}, status=422 if report.bad and not report.added else 200)


def _iter_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
        if len(rest) > _MAX_LINE_BYTES:
            raise ApiProblem(f"A line is longer than {_MAX_LINE_BYTES >> 20} MB.")
    if rest:
        yield rest


def _verdict_payloads(found: Sequence[TracePrediction]) -> list[dict[str, Any]]:
    return [dict(VerdictSerializer(each).data) for each in found]


def _validate(kind: type[serializers.Serializer[Any]], request: Request) -> dict[str, Any]:
    asked = kind(data=request.data)
    asked.is_valid(raise_exception=True)
    return dict(asked.validated_data)


def _actor(request: Request) -> dict[str, Any]:
    return {"by": cast(User, request.user), "now": timezone.now()}


def _as_problem(refused: Exception) -> ApiProblem:
    is_ours = isinstance(refused, inference.PRMNotUsable)
    return ApiProblem(str(refused), status_code=409 if is_ours else status.HTTP_502_BAD_GATEWAY)
