"""What two machines agree on, and how often people agree with it: the same as on the page of leads."""

from typing import Any, ClassVar, cast

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope, User
from api.problems import ApiProblem
from api.views.projects import ProjectView
from api.views.steering_orders import StrictSerializer
from labeling.models import Project, Rater
from machines import consensus_report, routes
from machines.license_strata import PROMISES
from machines.licenses import MIN_RETEST_SHARE
from machines.routes import RouteRefused
from people.roles import Action


class MachinesSerializer(StrictSerializer):
    first = serializers.CharField(max_length=200, help_text="Name of a machine, or its pseudonym in datasets.")
    second = serializers.CharField(max_length=200)


class EstimateSerializer(serializers.Serializer[Any]):
    value = serializers.FloatField(allow_null=True)
    reason = serializers.CharField(allow_null=True, help_text="Why there is no value.")
    low = serializers.FloatField(allow_null=True, help_text="The 95 % interval by problem.")
    high = serializers.FloatField(allow_null=True)
    n = serializers.IntegerField(help_text="Traces.")
    n_problems = serializers.IntegerField()


class MachineConsensusSerializer(serializers.Serializer[Any]):
    n_traces = serializers.IntegerField(help_text="Traces that both machines labeled.")
    n_kept = serializers.IntegerField(help_text="Of them, those for which both name the same first error.")
    n_kept_with_people = serializers.IntegerField(help_text="Kept traces with a consensus of people.")
    n_dropped_with_people = serializers.IntegerField()
    kept = EstimateSerializer()
    precision_kept = EstimateSerializer(help_text="Share of the kept labels that equal the consensus of people.")
    first_dropped = EstimateSerializer(help_text="The same for the first machine, where they disagree.")
    second_dropped = EstimateSerializer()
    first_overall = EstimateSerializer()
    second_overall = EstimateSerializer()


class MachineConsensusView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ}
    actions: ClassVar = {"GET": Action.READ}

    @extend_schema(
        operation_id="read_machine_consensus", parameters=[MachinesSerializer], responses=MachineConsensusSerializer
    )
    def get(self, request: Request, slug: str) -> Response:
        """How often two machines name the same first error, and how often people agree with them."""
        project = self.enter(request, slug).project
        serializer = MachinesSerializer(data=request.query_params.dict())
        serializer.is_valid(raise_exception=True)
        first, second = _find_machines(project, serializer.validated_data)
        report = consensus_report.describe_report(consensus_report.compare_machines(first, second))
        return Response(dict(MachineConsensusSerializer(report).data))


def _find_machines(project: Project, named: dict[str, Any]) -> tuple[Rater, Rater]:
    first, second = (consensus_report.find_machine(project, named[name]) for name in ("first", "second"))
    if first is None or second is None:
        unknown = [name for name, machine in (("first", first), ("second", second)) if machine is None]
        raise serializers.ValidationError({name: ["Unknown machine."] for name in unknown})
    return first, second


class ConsensusRouteSerializer(StrictSerializer):
    id = serializers.IntegerField(read_only=True)
    first = serializers.CharField(max_length=200, help_text="Name of a machine, or its pseudonym in datasets.")
    second = serializers.CharField(max_length=200)
    promised = serializers.FloatField(default=0.9, help_text=f"One of {', '.join(map(str, PROMISES))}.")
    retest_share = serializers.FloatField(min_value=MIN_RETEST_SHARE, max_value=1, default=0.1)
    puts_disagreement_first = serializers.BooleanField(
        default=True, help_text="Set the acquisition “disagreement” for the next batches."
    )
    opened_at = serializers.DateTimeField(read_only=True)
    closed_at = serializers.DateTimeField(read_only=True, allow_null=True)
    n_strata = serializers.IntegerField(read_only=True, help_text="Strata with evidence.")
    n_kept = serializers.IntegerField(read_only=True, help_text="Traces that both machines settled.")
    n_retests = serializers.IntegerField(read_only=True)
    n_ended = serializers.IntegerField(read_only=True, help_text="Licenses that have ended.")
    licenses = serializers.ListField(child=serializers.JSONField(), read_only=True)
    job = serializers.IntegerField(read_only=True)


class ConsensusRouteListView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.JUDGE}
    actions: ClassVar = {"GET": Action.READ, "POST": Action.LICENSE}

    @extend_schema(operation_id="list_consensus_routes", responses=ConsensusRouteSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The consensus routes of a project, newest first: at most 50."""
        project = self.enter(request, slug).project
        return Response([routes.describe_route(each) for each in routes.list_routes(project.pk)[:50]])

    @extend_schema(
        operation_id="open_consensus_route",
        request=ConsensusRouteSerializer,
        responses={202: ConsensusRouteSerializer},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Weigh the evidence about two machines in the background, and let both settle the traces on which they agree,
        in each stratum that keeps the promise."""
        project = self.enter(request, slug).project
        serializer = ConsensusRouteSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = dict(serializer.validated_data)
        first, second = _find_machines(project, values)
        options = {name: values[name] for name in ("promised", "retest_share", "puts_disagreement_first")}
        by, now = cast(User, request.user), timezone.now()
        try:
            job = routes.request_route(first=first, second=second, by=by, now=now, **options)
        except RouteRefused as error:
            raise ApiProblem(str(error)) from error
        return Response(values | {"job": job.pk}, status=202)


class ClosedRouteSerializer(StrictSerializer):
    returns_traces = serializers.BooleanField(
        default=False, help_text="Return the traces that it settled to people. Also works after it was closed."
    )
    withdrawn = serializers.IntegerField(read_only=True, help_text="Labels that no longer count.")


class CloseConsensusRouteView(ProjectView):
    scopes: ClassVar = {"POST": Scope.JUDGE}
    actions: ClassVar = {"POST": Action.LICENSE}

    @extend_schema(
        operation_id="close_consensus_route", request=ClosedRouteSerializer, responses={200: ClosedRouteSerializer}
    )
    def post(self, request: Request, slug: str, route: int) -> Response:
        """Close a route, and end its licenses."""
        project = self.enter(request, slug).project
        row = get_object_or_404(routes.list_routes(project.pk), pk=route)
        serializer = ClosedRouteSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        returns = serializer.validated_data["returns_traces"]
        by, now = cast(User, request.user), timezone.now()
        withdrawn = routes.close_route(route=row, by=by, now=now, returns_traces=returns)
        return Response({"returns_traces": returns, "withdrawn": withdrawn})
