"""Projects: list and read them; the base of all views on a project."""

from collections.abc import Mapping
from typing import ClassVar, cast

from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import Scope, User
from api.problems import ApiProblem
from labeling.models import Project, Rater
from labeling.quality import project_stats
from people import roles
from people.models import Membership
from people.roles import Action


class ProjectSerializer(serializers.ModelSerializer[Project]):
    class Meta:
        model = Project
        fields = ("slug", "name", "description", "protocol", "state", "overlap", "created_at")


class ProjectView(APIView):
    """Respond with 404 to users who are not members, and with 403 to members whose role does not permit the method."""

    scopes: ClassVar[Mapping[str, Scope]]
    actions: ClassVar[Mapping[str, Action]]

    def enter(self, request: Request, slug: str) -> Membership:
        user = cast(User, request.user)
        membership = get_object_or_404(Membership.objects.of(user).select_related("project"), project__slug=slug)
        roles.require_action(membership, self.actions["GET" if request.method == "HEAD" else cast(str, request.method)])
        return membership


class ProjectListView(APIView):
    scopes: ClassVar = {"GET": Scope.READ}

    @extend_schema(operation_id="list_projects", responses=ProjectSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The projects that the token's user may read."""
        projects = roles.visible_projects(cast(User, request.user), Action.READ).order_by("slug")
        return Response(ProjectSerializer(projects, many=True).data)


class ProjectDetailView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ}
    actions: ClassVar = {"GET": Action.READ}

    @extend_schema(operation_id="read_project", responses=ProjectSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """One project."""
        return Response(dict(ProjectSerializer(self.enter(request, slug).project).data))


class AgreementView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ}
    actions: ClassVar = {"GET": Action.READ}

    @extend_schema(
        operation_id="read_agreement",
        parameters=[
            OpenApiParameter(
                "without", str, many=True, description="The pseudonym of a rater to leave out. Repeat it for several."
            )
        ],
        responses=OpenApiTypes.OBJECT,
    )
    def get(self, request: Request, slug: str) -> Response:
        """The headline agreement of the project: each statistic with its interval, or why it is missing. With
        `without`, traces on which one of these raters is compared are left out."""
        project = self.enter(request, slug).project
        labelers = request.query_params.getlist("without")
        raters = dict(Rater.objects.filter(project=project, labeler__in=labelers).values_list("labeler", "pk"))
        if unknown := sorted(set(labelers) - raters.keys()):
            raise ApiProblem(f"Unknown rater: {', '.join(unknown)}. Use pseudonyms of this project.")
        found = project_stats.compute_headline_without(project_id=project.pk, raters=[*raters.values()])
        return Response({**found, "without": sorted(raters)})
