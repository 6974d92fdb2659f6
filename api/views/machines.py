"""Machine raters: their passports, their licenses, and the results that include them."""

from typing import Any, ClassVar, cast

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope, User
from api.problems import ApiProblem
from api.views.projects import ProjectView
from api.views.steering_orders import StrictSerializer
from labeling.models import LicensedLabel, Rater
from labeling.models.rater import RaterKind
from machines import licenses, passports
from machines.license_strata import PROMISES, Stratum
from machines.licenses import LicenseRefused
from machines.models import MachineLicense
from machines.passport_models import LicenseEnd
from people.roles import Action
from stats.alternative_annotator import EPSILONS

_MOST_RESULTS = 1000
_MOST_PASSPORTS = 50


class MachineSerializer(StrictSerializer):
    id = serializers.IntegerField(read_only=True)
    machine = serializers.CharField(read_only=True)


class MachineListView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ}
    actions: ClassVar = {"GET": Action.READ}

    @extend_schema(operation_id="list_machines", responses=MachineSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The machine raters of a project: judges, and machines whose labels were imported."""
        project = self.enter(request, slug).project
        rows = Rater.objects.filter(project=project, kind=RaterKind.MACHINE).order_by("pk")
        return Response(MachineSerializer(rows, many=True).data)


class PassportSerializer(StrictSerializer):
    id = serializers.IntegerField(read_only=True)
    machine = serializers.CharField(source="rater.machine", read_only=True)
    people = serializers.ChoiceField(
        choices=list(EPSILONS),
        default="skilled",
        write_only=True,
        help_text="Who labels the project. Sets ε of the alternative annotator test.",
    )
    epsilon = serializers.FloatField(read_only=True)
    issued_at = serializers.DateTimeField(read_only=True)
    expired_at = serializers.DateTimeField(read_only=True, allow_null=True)
    expired_because = serializers.CharField(read_only=True)
    n_retests = serializers.IntegerField(read_only=True)
    identity = serializers.JSONField(read_only=True)
    content = serializers.JSONField(read_only=True, help_text="The figures.")


class RequestedPassportSerializer(StrictSerializer):
    job = serializers.IntegerField(read_only=True)


class PassportView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.JUDGE}
    actions: ClassVar = {"GET": Action.READ_QUALITY, "POST": Action.TRAIN}

    @extend_schema(operation_id="read_passport", responses=PassportSerializer)
    def get(self, request: Request, slug: str, rater: int) -> Response:
        """The newest passport of a machine. It may have expired."""
        machine = _find_machine(self, request, slug, rater)
        passport = machine.passports.select_related("rater").order_by("-issued_at", "-pk").first()
        if passport is None:
            raise ApiProblem("This machine has no passport. Request one first.")
        return Response(dict(PassportSerializer(passport).data))

    @extend_schema(
        operation_id="request_passport", request=PassportSerializer, responses={202: RequestedPassportSerializer}
    )
    def post(self, request: Request, slug: str, rater: int) -> Response:
        """Compute a new passport in the background. It replaces the valid one."""
        machine = _find_machine(self, request, slug, rater)
        serializer = PassportSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        by = cast(User, request.user)
        epsilon = EPSILONS[serializer.validated_data["people"]]
        job = passports.request_passport(rater=machine, epsilon=epsilon, by=by, now=timezone.now())
        return Response({"job": job.pk}, status=202)


class PassportHistorySerializer(StrictSerializer):
    id = serializers.IntegerField(read_only=True)
    accuracy = serializers.FloatField(read_only=True, allow_null=True)
    passes_test = serializers.BooleanField(read_only=True)
    issued_at = serializers.DateTimeField(read_only=True)
    expired_at = serializers.DateTimeField(read_only=True, allow_null=True)
    expired_because = serializers.CharField(read_only=True, help_text="Empty for the valid one.")
    n_retests = serializers.IntegerField(read_only=True)
    identity = serializers.JSONField(read_only=True)
    content = serializers.JSONField(read_only=True, help_text="The figures.")


class PassportHistoryView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ}
    actions: ClassVar = {"GET": Action.READ_QUALITY}

    @extend_schema(operation_id="list_passports", responses=PassportHistorySerializer(many=True))
    def get(self, request: Request, slug: str, rater: int) -> Response:
        """All passports of a machine with the reason why each expired, newest first: at most 50."""
        rows = passports.list_history(_find_machine(self, request, slug, rater))[:_MOST_PASSPORTS]
        return Response(PassportHistorySerializer(rows, many=True).data)


class LicenseSerializer(StrictSerializer):
    id = serializers.IntegerField(read_only=True)
    domain = serializers.CharField(max_length=100, allow_blank=True, default="")
    shortest = serializers.IntegerField(min_value=1, help_text="Fewest steps of a trace, as in the passport’s strata.")
    longest = serializers.IntegerField(min_value=1, allow_null=True, default=None)
    says_error = serializers.BooleanField(help_text="Whether the machine’s label names an error.")
    may_settle = serializers.BooleanField(default=False, help_text="Otherwise it counts as one label.")
    promised = serializers.FloatField(default=0.9, help_text=f"One of {', '.join(map(str, PROMISES))}.")
    retest_share = serializers.FloatField(min_value=licenses.MIN_RETEST_SHARE, max_value=1, default=0.1)
    lower_bound = serializers.FloatField(read_only=True, allow_null=True)
    agreement = serializers.FloatField(read_only=True)
    granted_at = serializers.DateTimeField(read_only=True)
    ended_at = serializers.DateTimeField(read_only=True, allow_null=True)
    ended_because = serializers.CharField(read_only=True)


class LicenseListView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.JUDGE}
    actions: ClassVar = {"GET": Action.READ, "POST": Action.LICENSE}

    @extend_schema(operation_id="list_licenses", responses=LicenseSerializer(many=True))
    def get(self, request: Request, slug: str, rater: int) -> Response:
        """The licenses of a machine, newest first."""
        machine = _find_machine(self, request, slug, rater)
        return Response(LicenseSerializer(machine.licenses.order_by("-pk")[:100], many=True).data)

    @extend_schema(operation_id="grant_license", request=LicenseSerializer, responses={201: LicenseSerializer})
    def post(self, request: Request, slug: str, rater: int) -> Response:
        """License a machine in one stratum of its passport."""
        machine = _find_machine(self, request, slug, rater)
        serializer = LicenseSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = dict(serializer.validated_data)
        passport = passports.find_valid_passport(machine)
        if passport is None:
            raise ApiProblem("This machine has no valid passport. Request one first.")
        stratum = Stratum(**{name: values.pop(name) for name in Stratum._fields})
        by, now = cast(User, request.user), timezone.now()
        try:
            row = licenses.grant_license(passport=passport, stratum=stratum, by=by, now=now, **values)
        except LicenseRefused as error:
            raise ApiProblem(str(error)) from error
        return Response(dict(LicenseSerializer(row).data), status=201)


class EndedLicenseSerializer(StrictSerializer):
    returns_traces = serializers.BooleanField(
        default=False, help_text="Return the traces that it settled to people. Also works after a license has ended."
    )
    withdrawn = serializers.IntegerField(read_only=True, help_text="Labels that no longer count.")


class LicenseRevocationView(ProjectView):
    scopes: ClassVar = {"POST": Scope.JUDGE}
    actions: ClassVar = {"POST": Action.LICENSE}

    @extend_schema(
        operation_id="revoke_license", request=EndedLicenseSerializer, responses={200: EndedLicenseSerializer}
    )
    def post(self, request: Request, slug: str, license: int) -> Response:
        """End a license."""
        project = self.enter(request, slug).project
        row = get_object_or_404(MachineLicense.objects.select_related("rater"), project=project, pk=license)
        serializer = EndedLicenseSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        returns = serializer.validated_data["returns_traces"]
        withdrawn = licenses.end_license(
            license=row,
            because=LicenseEnd.REVOKED,
            by=cast(User, request.user),
            now=timezone.now(),
            returns_traces=returns,
        )
        return Response({"returns_traces": returns, "withdrawn": withdrawn})


class AssistedResultSerializer(StrictSerializer):
    trace = serializers.IntegerField(source="trace_id", read_only=True)
    digest = serializers.CharField(source="trace.digest", read_only=True)
    first_error = serializers.IntegerField(source="settled_first_error", read_only=True, allow_null=True)
    machine = serializers.CharField(source="rater.machine", read_only=True)
    agreeing_machine = serializers.CharField(
        read_only=True, help_text="The second machine of a consensus route; empty for a license without one."
    )
    license = serializers.IntegerField(read_only=True)
    role = serializers.CharField(read_only=True)
    n_people = serializers.IntegerField(read_only=True)
    retest_probability = serializers.FloatField(read_only=True)
    settled_at = serializers.DateTimeField(read_only=True)


class AssistedResultView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ}
    actions: ClassVar = {"GET": Action.TAKE_OUT}

    @extend_schema(
        operation_id="list_assisted_results",
        parameters=[OpenApiParameter("after", OpenApiTypes.INT64, description="The last trace that you have.")],
        responses=AssistedResultSerializer(many=True),
    )
    def get(self, request: Request, slug: str) -> Response:
        """Traces settled with a licensed machine, by trace: at most 1,000 after the trace `after`. No dataset of people
        contains them."""
        project = self.enter(request, slug).project
        after = serializers.IntegerField(min_value=0, max_value=2**62).run_validation(
            request.query_params.get("after", "0")
        )
        return Response(describe_results(project.pk, after))


def describe_results(project_id: int, after: int = 0) -> list[dict[str, Any]]:
    rows: list[LicensedLabel] = list(licenses.list_results(project_id).filter(trace__gt=after)[:_MOST_RESULTS])
    agreeing = licenses.name_agreeing_machines(project_id)
    for row in rows:
        row.agreeing_machine = agreeing.get(row.license, "")  # type: ignore[attr-defined]  # for the serializer
    return list(AssistedResultSerializer(rows, many=True).data)


def _find_machine(view: ProjectView, request: Request, slug: str, rater: int) -> Rater:
    project = view.enter(request, slug).project
    return get_object_or_404(Rater, project=project, kind=RaterKind.MACHINE, pk=rater)
