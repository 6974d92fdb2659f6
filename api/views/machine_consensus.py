"""What two machines agree on, and how often people agree with it: the same as on the page of leads."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope
from api.views.projects import ProjectView
from api.views.steering_orders import StrictSerializer
from machines import consensus_report
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
        found = {name: consensus_report.find_machine(project, text) for name, text in serializer.validated_data.items()}
        if unknown := {name: ["Unknown machine."] for name, machine in found.items() if machine is None}:
            raise serializers.ValidationError(unknown)
        first, second = found["first"], found["second"]
        assert first is not None
        assert second is not None
        report = consensus_report.describe_report(consensus_report.compare_machines(first, second))
        return Response(dict(MachineConsensusSerializer(report).data))
