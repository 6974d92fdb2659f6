"""Steer who labels what, and read pay: the same as on the pages of leads."""

from typing import Any, ClassVar, cast

import msgspec
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope, User
from api.problems import ApiProblem
from api.views.projects import ProjectView
from events import audit_log
from labeling import queue
from labeling.models import RaterGroup, SteeringRule
from labeling.traces import steering_rules
from people import payroll, roles, steering_orders
from people.roles import Action
from people.steering_orders import InvalidSteering, SteeringOrder, TraceChoice

MAX_STEERED = 5000  # traces of one request


class StrictSerializer(serializers.Serializer[Any]):
    """Refuse unknown keys: ignoring a misspelled one would do something other than requested."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if unknown := sorted(set(self.initial_data) - set(self.fields)):
            raise serializers.ValidationError({name: ["Unknown key."] for name in unknown})
        return attrs


class SteeringSerializer(StrictSerializer):
    """Traces that meet all given conditions, and what to do with them."""

    action = serializers.ChoiceField(choices=list(steering_orders.REQUIRED_ACTIONS))
    traces = serializers.ListField(child=serializers.IntegerField(min_value=1, max_value=2**63 - 1), required=False)
    refs = serializers.ListField(child=serializers.CharField(max_length=200), required=False)
    domain = serializers.CharField(max_length=100, required=False)
    tagged = serializers.CharField(max_length=40, required=False, help_text="Only traces with this tag.")
    file = serializers.CharField(max_length=200, required=False, help_text="Part of the name of the imported file.")
    metadata = serializers.DictField(required=False, help_text="Metadata fields and their values.")
    tag = serializers.CharField(max_length=40, required=False, help_text="The tag to add or to remove.")
    group = serializers.CharField(max_length=80, required=False, help_text="`first`: only for this group.")
    rater = serializers.CharField(
        max_length=200, required=False, help_text="`first`: only for this annotator; a username or a pseudonym."
    )
    reviewer = serializers.CharField(
        max_length=200, required=False, help_text="Username of the adjudicator. Omit it to assign no one."
    )
    reason = serializers.CharField(max_length=200, required=False, help_text="Why the traces are withdrawn.")


class OutcomeSerializer(serializers.Serializer[Any]):
    done = serializers.IntegerField()
    skipped = serializers.DictField(child=serializers.IntegerField(), help_text="Number of skipped traces by reason.")


class SteerTracesView(ProjectView):
    scopes: ClassVar = {"POST": Scope.STEER}
    actions: ClassVar = {"POST": Action.READ}

    @extend_schema(operation_id="steer_traces", request=SteeringSerializer, responses=OutcomeSerializer)
    def post(self, request: Request, slug: str) -> Response:
        """Tag traces, put them first, assign them, request labels, or withdraw them. Each action needs the role that
        it needs on the page."""
        membership = self.enter(request, slug)
        serializer = SteeringSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        wanted = dict(serializer.validated_data)
        roles.require_action(membership, steering_orders.REQUIRED_ACTIONS[wanted["action"]])
        choice = {name: wanted[name] for name in ("traces", "refs", "domain", "metadata") if name in wanted}
        order = {name: wanted[name] for name in SteeringOrder.__struct_fields__ if name in wanted}
        try:
            outcome = steering_orders.steer_traces(
                project=membership.project,
                choice=TraceChoice(**choice, tag=wanted.get("tagged", ""), source=wanted.get("file", "")),
                order=SteeringOrder(**order),
                by=cast(User, request.user),
                now=timezone.now(),
                limit=MAX_STEERED,
            )
        except InvalidSteering as error:
            raise ApiProblem(str(error)) from error
        return Response({"done": outcome.n_done, "skipped": dict(outcome.refused)})


class GroupSerializer(StrictSerializer):
    name = serializers.CharField(max_length=80)
    raters = serializers.ListField(
        child=serializers.CharField(max_length=200),
        help_text="Usernames or pseudonyms. They replace the current annotators of the group.",
    )


class GroupListView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ, "PUT": Scope.STEER}
    actions: ClassVar = {"GET": Action.PAUSE, "PUT": Action.PAUSE}

    @extend_schema(operation_id="list_groups", responses=GroupSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The groups of annotators with the user names of their members."""
        groups = RaterGroup.objects.named().filter(project=self.enter(request, slug).project).order_by("name")
        return Response([_group_payload(group) for group in groups.prefetch_related("raters__user")])

    @extend_schema(operation_id="save_group", request=GroupSerializer, responses=GroupSerializer)
    def put(self, request: Request, slug: str) -> Response:
        """Create a group, or replace its annotators."""
        project = self.enter(request, slug).project
        serializer = GroupSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        wanted = serializer.validated_data
        try:
            raters = steering_orders.find_raters(project, wanted["raters"])
        except InvalidSteering as error:
            raise ApiProblem(str(error)) from error
        by, now = cast(User, request.user), timezone.now()
        group = queue.save_group(project=project, name=wanted["name"], raters=raters, by=by, now=now)
        return Response(_group_payload(group))


class GroupDetailView(ProjectView):
    scopes: ClassVar = {"DELETE": Scope.STEER}
    actions: ClassVar = {"DELETE": Action.PAUSE}

    @extend_schema(operation_id="delete_group", responses={204: None})
    def delete(self, request: Request, slug: str, name: str) -> HttpResponse:
        """Delete a group. Its waiting traces return to their usual places in the queue, and its rules stop."""
        project = self.enter(request, slug).project
        group = get_object_or_404(RaterGroup.objects.named(), project=project, name=name)
        steering_rules.delete_group(group=group, by=cast(User, request.user), now=timezone.now())
        return Response(status=204)


def _group_payload(group: RaterGroup) -> dict[str, Any]:
    names = (rater.user.username if rater.user else rater.labeler for rater in group.raters.all())
    return {"name": group.name, "raters": sorted(name for name in names if name)}


class RuleSerializer(StrictSerializer):
    id = serializers.IntegerField(read_only=True)
    domain = serializers.CharField(max_length=100, required=False, default="", allow_blank=True)
    file = serializers.CharField(
        max_length=100, required=False, default="", allow_blank=True, help_text="Part of the name of the imported file."
    )
    share = serializers.FloatField(
        min_value=0.0001,
        max_value=1,
        help_text="Share of matching traces to move to the front, above 0 and up to 1.",
    )
    group = serializers.CharField(
        max_length=80, required=False, default="", allow_blank=True, help_text="Empty: for everyone."
    )
    applies_to_existing = serializers.BooleanField(
        default=False, write_only=True, help_text="Also apply the rule to existing traces that are not labeled yet."
    )


class RuleListView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.STEER}
    actions: ClassVar = {"GET": Action.PAUSE, "POST": Action.PAUSE}

    @extend_schema(operation_id="list_rules", responses=RuleSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The rules that put a share of new traces first."""
        return Response(_list_rules(self.enter(request, slug).project.pk))

    @extend_schema(operation_id="make_rule", request=RuleSerializer, responses={201: RuleSerializer(many=True)})
    def post(self, request: Request, slug: str) -> Response:
        """Create a rule, and return all rules."""
        project = self.enter(request, slug).project
        serializer = RuleSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        wanted = dict(serializer.validated_data)
        name = wanted.pop("group")
        try:
            group = steering_orders.find_group(project, name) if name else None
        except InvalidSteering as error:
            raise ApiProblem(str(error)) from error
        by, now, source = cast(User, request.user), timezone.now(), wanted.pop("file")
        steering_rules.make_rule(project=project, group=group, source_name=source, by=by, now=now, **wanted)
        return Response(_list_rules(project.pk), status=201)


class RuleDetailView(ProjectView):
    scopes: ClassVar = {"DELETE": Scope.STEER}
    actions: ClassVar = {"DELETE": Action.PAUSE}

    @extend_schema(operation_id="stop_rule", responses={204: None})
    def delete(self, request: Request, slug: str, rule: int) -> HttpResponse:
        """Stop a rule. Traces that it moved to the front stay there."""
        project = self.enter(request, slug).project
        row = get_object_or_404(SteeringRule, project=project, pk=rule, stopped_at=None)
        steering_rules.stop_rule(rule=row, by=cast(User, request.user), now=timezone.now())
        return Response(status=204)


def _list_rules(project_id: int) -> list[dict[str, Any]]:
    rules = SteeringRule.objects.filter(project=project_id, stopped_at=None).select_related("group").order_by("pk")
    return [
        {
            "id": rule.pk,
            "domain": rule.domain,
            "file": rule.source_name,
            "share": rule.share,
            "group": rule.group.name if rule.group else "",
        }
        for rule in rules
    ]


class PayOptions(StrictSerializer):
    since = serializers.DateField(required=False, help_text="The first day, in UTC.")
    until = serializers.DateField(required=False, help_text="The last day, in UTC.")
    period = serializers.ChoiceField(choices=["day", "week", "month"], required=False)


class PaidWorkSerializer(serializers.Serializer[Any]):
    username = serializers.CharField(help_text="Empty if the account was erased.")
    pseudonym = serializers.CharField()
    is_member = serializers.BooleanField(help_text="False for removed members.")
    begins = serializers.DateField(allow_null=True, help_text="The first day of the period; null for the whole time.")
    days = serializers.IntegerField()
    traces = serializers.IntegerField()
    hours = serializers.FloatField()
    pay = serializers.DecimalField(
        max_digits=14, decimal_places=2, allow_null=True, help_text="Null if the project has no pay rate."
    )
    currency = serializers.CharField()


class PayView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ}
    actions: ClassVar = {"GET": Action.PAUSE}

    @extend_schema(operation_id="read_pay", parameters=[PayOptions], responses=PaidWorkSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """What each person has earned, in one row per person or period. The download is logged."""
        project = self.enter(request, slug).project
        options = PayOptions(data=request.query_params)
        options.is_valid(raise_exception=True)
        rows = payroll.list_paid_work(project=project, **options.validated_data)
        by, name = cast(User, request.user), f"{slug}-pay.json"
        now = timezone.now()
        audit_log.log_download(file=name, by=by, now=now, project=project.pk, has_names=True, n_rows=len(rows))
        return Response(PaidWorkSerializer([msgspec.structs.asdict(row) for row in rows], many=True).data)
