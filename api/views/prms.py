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
from api import bodies
from api.problems import Problem
from api.views.door import ProjectView
from labeling.texts import numbers
from people.roles import Action
from prm import pushing, using
from prm.backends.asked import BackendError, Trace
from prm.models import PRM
from prm.models.prm import Purpose
from prm.registry import NotRegistrable
from prm.sealing import CannotOpen
from prm.using import Verdict

_STEPS = serializers.ListField(child=serializers.CharField(allow_blank=True, trim_whitespace=False), max_length=5000)
_LONGEST_LINE = 1 << 20


class TraceSerializer(serializers.Serializer[Any]):
    problem = serializers.CharField(trim_whitespace=False)
    steps = _STEPS


class ScoreRequest(serializers.Serializer[Any]):
    project = serializers.SlugField()
    purpose = serializers.ChoiceField(choices=Purpose.choices, help_text="What the answer is for; calls are counted.")
    traces = serializers.ListField(child=TraceSerializer(), min_length=1, max_length=1000)


class RankRequest(serializers.Serializer[Any]):
    project = serializers.SlugField()
    purpose = serializers.ChoiceField(choices=Purpose.choices, default=Purpose.RERANK)
    problem = serializers.CharField(trim_whitespace=False)
    candidates = serializers.ListField(child=_STEPS, min_length=1, max_length=1000)


class VerdictSerializer(serializers.Serializer[Verdict]):
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


class ScoreTraces(ProjectView):
    scopes: ClassVar = {"POST": Scope.SCORE}
    actions: ClassVar = {"POST": Action.TRAIN}

    @extend_schema(operation_id="score_traces", request=ScoreRequest, responses=ScoreAnswer)
    def post(self, request: Request) -> Response:
        """What the project's current PRM says of traces: each step, where the first error is, which step to flag."""
        asked = _checked(ScoreRequest, request)
        project = self.enter(request, asked["project"]).project
        traces = [Trace(each["problem"], each["steps"]) for each in asked["traces"]]
        try:
            prm, found = using.score(project=project, traces=traces, purpose=asked["purpose"], **_who(request))
        except (using.NotUsable, BackendError, NotRegistrable, CannotOpen) as refused:
            raise _problem(refused) from None
        return Response({"prm": prm.label, "traces": _told(found)})


class RankCandidates(ProjectView):
    scopes: ClassVar = {"POST": Scope.SCORE}
    actions: ClassVar = {"POST": Action.TRAIN}

    @extend_schema(operation_id="rank_candidates", request=RankRequest, responses=RankAnswer)
    def post(self, request: Request) -> Response:
        """The candidates of one problem, the one that is likeliest right throughout first."""
        asked = _checked(RankRequest, request)
        project = self.enter(request, asked["project"]).project
        traces = [Trace(asked["problem"], steps) for steps in asked["candidates"]]
        try:
            prm, order, found = using.rank(
                project=project, candidates=traces, purpose=asked["purpose"], **_who(request)
            )
        except (using.NotUsable, BackendError, NotRegistrable, CannotOpen) as refused:
            raise _problem(refused) from None
        return Response({"prm": prm.label, "order": order, "candidates": _told(found)})


class PushScores(ProjectView):
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
            found, project=project, version=numbers.whole(request.query_params.get("prm"), digits=9)
        )
        bodies.size_of(request)
        try:
            report = pushing.push(prm=prm, lines=_lines(bodies.pieces(request)), **_who(request))
        except pushing.NotPushable as refused:
            raise Problem(str(refused)) from None
        told = [{"line": line, "reason": reason} for line, reason in report.bad_lines]
        return Response({**vars(report), "bad_lines": told}, status=422 if report.bad and not report.added else 200)


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
        if len(rest) > _LONGEST_LINE:
            raise Problem(f"A line is longer than {_LONGEST_LINE >> 20} MB.")
    if rest:
        yield rest


def _told(found: Sequence[Verdict]) -> list[dict[str, Any]]:
    return [dict(VerdictSerializer(each).data) for each in found]


def _checked(kind: type[serializers.Serializer[Any]], request: Request) -> dict[str, Any]:
    asked = kind(data=request.data)
    asked.is_valid(raise_exception=True)
    return dict(asked.validated_data)


def _who(request: Request) -> dict[str, Any]:
    return {"by": cast(User, request.user), "now": timezone.now()}


def _problem(refused: Exception) -> Problem:
    is_ours = isinstance(refused, using.NotUsable)
    return Problem(str(refused), status_code=409 if is_ours else status.HTTP_502_BAD_GATEWAY)
