"""List and read projects."""

from typing import Any, ClassVar, cast

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import Scope, User
from api.serializers import ProjectSerializer
from api.views.project_view import ProjectView
from people import roles
from people.roles import Action


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
        data: dict[str, Any] = ProjectSerializer(self.enter(request, slug).project).data
        return Response(data)
