"""Judges and their runs, Monte Carlo raters and PRMs that label among them: the same as on the pages of leads."""

from decimal import Decimal
from typing import Any, ClassVar, cast

from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope, User
from api.problems import ApiProblem
from api.views.projects import ProjectView
from api.views.steering_orders import StrictSerializer
from labeling.models import Project
from machines import cost_caps, judges, prompts, runs
from machines.answers import CheckerKind
from machines.judges import InvalidJudge, JudgeSettings
from machines.models import EndpointKind, Judge, JudgeContractKind, JudgeRun, MachineBudget, RunScope
from machines.rollouts import RolloutOptions, SearchKind
from machines.runs import RunRefused
from people.roles import Action
from prm.models import PRM

_MOST_TRACES = 10**9
_MOST_TOKENS = 10**15


_DEFAULTS = RolloutOptions()


class RolloutOptionsSerializer(serializers.Serializer[Any]):
    checker = serializers.ChoiceField(choices=[(kind.value, kind.value) for kind in CheckerKind], default="number")
    pattern = serializers.CharField(
        max_length=200, default="", allow_blank=True, help_text="Of the checker “regex”; its group is the answer."
    )
    checker_address = serializers.CharField(max_length=500, default="", allow_blank=True)
    search = serializers.ChoiceField(choices=[(kind.value, kind.value) for kind in SearchKind], default="every_step")
    threshold = serializers.FloatField(
        default=0.0, help_text="A step is wrong up to this share of right answers after it."
    )
    stops_early = serializers.BooleanField(default=False)
    measures_progress = serializers.BooleanField(default=False)
    separator = serializers.CharField(
        max_length=20, default=_DEFAULTS.separator, allow_blank=True, trim_whitespace=False
    )
    stop = serializers.CharField(max_length=100, default=_DEFAULTS.stop, allow_blank=True, trim_whitespace=False)

    def to_internal_value(self, data: Any) -> Any:
        """Refuse unknown keys: a misspelled one would be ignored."""
        if isinstance(data, dict) and (unknown := sorted(set(data) - set(self.fields))):
            raise serializers.ValidationError({name: [_("Unknown key.")] for name in unknown})
        return super().to_internal_value(data)


class JudgeSerializer(StrictSerializer):
    id = serializers.IntegerField(read_only=True)
    name = serializers.CharField(
        max_length=60, help_text="If a judge with this name exists, this becomes its next version."
    )
    version = serializers.IntegerField(read_only=True)
    kind = serializers.CharField(read_only=True, help_text="judge, monte_carlo or prm.")
    address = serializers.CharField(
        max_length=500,
        default="",
        allow_blank=True,
        help_text="Base URL of the API, for example http://gpu:8000/v1. A PRM has none.",
    )
    model = serializers.CharField(max_length=200, default="", allow_blank=True)
    family = serializers.CharField(
        max_length=12,
        default=EndpointKind.VLLM,
        help_text=f"One of: {', '.join(EndpointKind.values)}. Of a PRM, its backend.",
    )
    model_digest = serializers.CharField(max_length=100, required=False, default="", allow_blank=True)
    key = serializers.CharField(max_length=500, required=False, default="", allow_blank=True, write_only=True)
    contract = serializers.ChoiceField(choices=JudgeContractKind.choices, default=JudgeContractKind.CRITIC)
    prompt = serializers.CharField(
        max_length=prompts.MAX_TEMPLATE_CHARACTERS,
        required=False,
        default="",
        allow_blank=True,
        trim_whitespace=False,
        help_text="If empty, the contract’s built-in prompt is used.",
    )
    prompt_version = serializers.IntegerField(read_only=True)
    prompt_digest = serializers.CharField(read_only=True)
    n_votes = serializers.IntegerField(default=1)
    temperature = serializers.FloatField(default=0.0)
    top_p = serializers.FloatField(default=1.0)
    max_tokens = serializers.IntegerField(default=8192)
    timeout = serializers.FloatField(default=120.0)
    n_concurrent = serializers.IntegerField(default=8)
    prompt_price = serializers.DecimalField(
        max_digits=10, decimal_places=4, default=Decimal(0), help_text="Price per million tokens."
    )
    completion_price = serializers.DecimalField(max_digits=10, decimal_places=4, default=Decimal(0))
    rollouts = RolloutOptionsSerializer(
        required=False, help_text="Of the contract “rollouts”: how answers are checked, and which steps are valued."
    )
    prm = serializers.IntegerField(
        source="prm.version",
        required=False,
        min_value=1,
        max_value=_MOST_TRACES,
        help_text="Of the contract “prm”: the version of the PRM that labels.",
    )
    threshold = serializers.FloatField(
        required=False,
        allow_null=True,
        help_text="Of the contract “prm”: P(wrong) from which a step is wrong. Default: the PRM’s own.",
    )
    rater = serializers.CharField(
        source="rater.machine", read_only=True, help_text="The rater that its labels are recorded under."
    )
    may_run = serializers.BooleanField(
        read_only=True, help_text="False if the prompt was edited and has not been tried yet."
    )

    def to_representation(self, instance: Judge) -> dict[str, Any]:
        shown = dict(super().to_representation(instance))
        if not instance.rollouts:
            del shown["rollouts"]
        return shown


class JudgeRunSerializer(StrictSerializer):
    id = serializers.IntegerField(read_only=True)
    judge = serializers.CharField(source="judge.label", read_only=True)
    is_trial = serializers.BooleanField(default=False, help_text="Ask about three traces and store no labels.")
    scope = serializers.ChoiceField(choices=RunScope.choices, default=RunScope.ALL)
    most_traces = serializers.IntegerField(min_value=1, max_value=_MOST_TRACES, required=False, allow_null=True)
    most_tokens = serializers.IntegerField(min_value=1, max_value=_MOST_TOKENS, required=False, allow_null=True)
    most_money = serializers.DecimalField(max_digits=12, decimal_places=4, min_value=0, required=False, allow_null=True)
    state = serializers.CharField(read_only=True)
    pause = serializers.CharField(read_only=True, help_text="Why the run is paused.")
    pause_line = serializers.CharField(read_only=True)
    resumes_at = serializers.DateTimeField(read_only=True, allow_null=True)
    n_traces = serializers.IntegerField(read_only=True)
    n_judged = serializers.IntegerField(read_only=True)
    n_labeled = serializers.IntegerField(read_only=True, help_text="Traces with a readable answer.")
    n_votes = serializers.IntegerField(read_only=True)
    n_unread = serializers.IntegerField(read_only=True)
    n_failed = serializers.IntegerField(read_only=True)
    prompt_tokens = serializers.IntegerField(read_only=True)
    completion_tokens = serializers.IntegerField(read_only=True)
    money = serializers.DecimalField(max_digits=16, decimal_places=8, read_only=True)
    asked_at = serializers.DateTimeField(read_only=True)
    ended_at = serializers.DateTimeField(read_only=True, allow_null=True)


class JudgeListView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.JUDGE}
    actions: ClassVar = {"GET": Action.READ, "POST": Action.TRAIN}

    @extend_schema(operation_id="list_judges", responses=JudgeSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The judges of the project, newest first. Their keys are never shown."""
        rows = Judge.objects.filter(project=self.enter(request, slug).project).select_related("rater", "prm")
        rows = rows.defer("key", "prm__weights", "prm__trained")
        return Response(JudgeSerializer(rows.order_by("-pk"), many=True).data)

    @extend_schema(operation_id="add_judge", request=JudgeSerializer, responses={201: JudgeSerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Add a judge, a Monte Carlo rater (contract “rollouts”) or a PRM that labels (contract “prm”)."""
        project = self.enter(request, slug).project
        serializer = JudgeSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        try:
            judge = _add_judge(project, serializer.validated_data, cast(User, request.user))
        except InvalidJudge as error:
            raise serializers.ValidationError({error.field: [str(error)]}) from error
        return Response(dict(JudgeSerializer(judge).data), status=201)


def _add_judge(project: Project, values: dict[str, Any], by: User) -> Judge:
    version = values.pop("prm", {}).get("version")
    threshold, rollouts = values.pop("threshold", None), values.pop("rollouts", None)
    if values["contract"] == JudgeContractKind.PRM:
        prm = PRM.objects.filter(project=project, version=version).first()
        if prm is None:
            raise InvalidJudge("prm", _("There is no PRM with this version."))
        return judges.add_prm_rater(prm=prm, name=values["name"], threshold=threshold, by=by, now=timezone.now())
    if values["family"] not in EndpointKind.values:
        raise InvalidJudge("family", _("Use one of: %s.") % ", ".join(EndpointKind.values))
    is_monte_carlo = values["contract"] == JudgeContractKind.ROLLOUTS
    options = RolloutOptions(**(rollouts or {})) if is_monte_carlo or rollouts else None
    settings = JudgeSettings(**values, rollouts=options)
    return judges.add_judge(project=project, settings=settings, by=by, now=timezone.now())


class JudgeRunListView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.JUDGE}
    actions: ClassVar = {"GET": Action.READ, "POST": Action.TRAIN}

    @extend_schema(operation_id="list_judge_runs", responses=JudgeRunSerializer(many=True))
    def get(self, request: Request, slug: str, judge: int) -> Response:
        """The runs of a judge, newest first."""
        row = get_object_or_404(Judge, project=self.enter(request, slug).project, pk=judge)
        return Response(JudgeRunSerializer(row.runs.select_related("judge").order_by("-pk")[:100], many=True).data)

    @extend_schema(operation_id="start_judge_run", request=JudgeRunSerializer, responses={201: JudgeRunSerializer})
    def post(self, request: Request, slug: str, judge: int) -> Response:
        """Start a run, or a trial on three traces."""
        row = get_object_or_404(Judge, project=self.enter(request, slug).project, pk=judge)
        serializer = JudgeRunSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        by, now = cast(User, request.user), timezone.now()
        try:
            run = runs.start_run(judge=row, by=by, now=now, **serializer.validated_data)
        except RunRefused as error:
            raise ApiProblem(str(error)) from error
        return Response(dict(JudgeRunSerializer(run).data), status=201)


class JudgeRunDetailView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ, "DELETE": Scope.JUDGE}
    actions: ClassVar = {"GET": Action.READ, "DELETE": Action.TRAIN}

    @extend_schema(operation_id="read_judge_run", responses=JudgeRunSerializer)
    def get(self, request: Request, slug: str, run: int) -> Response:
        """One run with its progress and cost."""
        return Response(dict(JudgeRunSerializer(_find_run(self, request, slug, run)).data))

    @extend_schema(operation_id="cancel_judge_run", responses={200: JudgeRunSerializer})
    def delete(self, request: Request, slug: str, run: int) -> Response:
        """Cancel a run. Its answers are kept."""
        row = _find_run(self, request, slug, run)
        runs.cancel_run(run=row, by=cast(User, request.user), now=timezone.now())
        row.refresh_from_db()
        return Response(dict(JudgeRunSerializer(row).data))


class ResumeJudgeRunView(ProjectView):
    scopes: ClassVar = {"POST": Scope.JUDGE}
    actions: ClassVar = {"POST": Action.TRAIN}

    @extend_schema(operation_id="resume_judge_run", request=None, responses=JudgeRunSerializer)
    def post(self, request: Request, slug: str, run: int) -> Response:
        """Resume a paused run."""
        row = _find_run(self, request, slug, run)
        try:
            runs.resume_run(run=row, by=cast(User, request.user), now=timezone.now())
        except RunRefused as error:
            raise ApiProblem(str(error)) from error
        row.refresh_from_db()
        return Response(dict(JudgeRunSerializer(row).data))


def _find_run(view: ProjectView, request: Request, slug: str, run: int) -> JudgeRun:
    rows = JudgeRun.objects.select_related("judge")
    return get_object_or_404(rows, judge__project=view.enter(request, slug).project, pk=run)


class MachineBudgetSerializer(StrictSerializer):
    most_tokens = serializers.IntegerField(min_value=1, max_value=_MOST_TOKENS, allow_null=True, default=None)
    most_money = serializers.DecimalField(max_digits=12, decimal_places=4, min_value=0, allow_null=True, default=None)
    spent_tokens = serializers.IntegerField(read_only=True)
    spent_money = serializers.DecimalField(max_digits=16, decimal_places=8, read_only=True)


class MachineBudgetView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ, "PUT": Scope.JUDGE}
    actions: ClassVar = {"GET": Action.READ, "PUT": Action.TRAIN}

    @extend_schema(operation_id="read_machine_budget", responses=MachineBudgetSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """What all judges of the project may cost, and have cost."""
        return Response(_describe_budget(self.enter(request, slug).project.pk))

    @extend_schema(
        operation_id="set_machine_budget", request=MachineBudgetSerializer, responses=MachineBudgetSerializer
    )
    def put(self, request: Request, slug: str) -> Response:
        """Limit what all judges of the project may cost; null is no limit."""
        project = self.enter(request, slug).project
        serializer = MachineBudgetSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        judges.set_budget(project=project, by=cast(User, request.user), now=timezone.now(), **serializer.validated_data)
        return Response(_describe_budget(project.pk))


def _describe_budget(project_id: int) -> dict[str, Any]:
    budget, spent = MachineBudget.objects.filter(project=project_id).first(), cost_caps.sum_project(project_id)
    caps = {name: getattr(budget, name, None) for name in ("most_tokens", "most_money")}
    return dict(MachineBudgetSerializer({**caps, "spent_tokens": spent.tokens, "spent_money": spent.money}).data)
