"""Projects: list and read them; the base of all views on a project."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from django.db.models import Q
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import ApiToken, Scope, User
from api.problems import ApiProblem
from labeling.models import Project, Rater
from labeling.quality import project_stats
from people import roles
from people.models import Membership
from people.roles import Action

_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class ProjectSerializer(serializers.ModelSerializer[Project]):
    class Meta:
        model = Project
        fields = ("slug", "name", "description", "protocol", "state", "overlap", "created_at")


class ProjectView(APIView):
    """Respond with 404 to users who are not members, and with 403 to members whose role does not permit the method."""

    scopes: ClassVar[Mapping[str, Scope]]
    actions: ClassVar[Mapping[str, Action]]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse the character U+0000 in the address: the database cannot compare it."""
        super().initial(request, *args, **kwargs)
        if any("\0" in str(value) for value in kwargs.values()):
            raise Http404
        if any("\0" in value for _name, values in request.query_params.lists() for value in values):
            raise ApiProblem(_("The query contains the character U+0000, which is not allowed."))

    def enter(self, request: Request, slug: str) -> Membership:
        user = cast(User, request.user)
        memberships = Membership.objects.of(user).select_related("project")
        if (project := cast(ApiToken, request.auth).project) is not None:
            memberships = memberships.filter(project=project)
        membership = get_object_or_404(memberships, project__slug=slug)
        roles.require_action(membership, self.actions["GET" if request.method == "HEAD" else cast(str, request.method)])
        return membership


class ProjectListView(APIView):
    scopes: ClassVar = {"GET": Scope.READ}

    @extend_schema(operation_id="list_projects", responses=ProjectSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The projects that the token's user may read."""
        projects = roles.visible_projects(cast(User, request.user), Action.READ).order_by("slug")
        if (project := cast(ApiToken, request.auth).project) is not None:
            projects = projects.filter(pk=project)
        return Response(ProjectSerializer(projects, many=True).data)


class ProjectDetailView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ}
    actions: ClassVar = {"GET": Action.READ}

    @extend_schema(operation_id="read_project", responses=ProjectSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """One project."""
        return Response(dict(ProjectSerializer(self.enter(request, slug).project).data))


# Query parameters that choose raters.
RATER_CHOICE = [
    OpenApiParameter(name, str, many=True, description=f"{what} Can be repeated.")
    for name, what in (
        ("only", "The pseudonym of a rater whose labels count, and no others."),
        ("without", "The pseudonym of a rater to leave out."),
    )
]


class AgreementView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ}
    actions: ClassVar = {"GET": Action.READ}

    @extend_schema(operation_id="read_agreement", parameters=RATER_CHOICE, responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, slug: str) -> Response:
        """The headline agreement of the project: each statistic with its interval, or why it is missing. With
        `only`, it covers the traces on which these raters are compared with each other; with `without`, those on which
        none of these raters is compared. `imported` has the agreement of the chosen raters' imported labels, or
        null."""
        project = self.enter(request, slug).project
        named = {name: request.query_params.getlist(name) for name in ("only", "without")}
        raters = {name: [rater.pk for rater in find_raters(project, names)] for name, names in named.items()}
        found = project_stats.compute_headline_by_raters(project_id=project.pk, **raters)
        return Response({**found, **{name: sorted(names) for name, names in named.items()}})


def find_raters(project: Project, names: Sequence[str]) -> list[Rater]:
    """Return the raters with these pseudonyms, or with these names in imported files."""
    if not names:
        return []
    by_name: dict[str, Rater] = {}
    is_pseudonym = [name for name in names if _UUID.fullmatch(name)]
    for rater in Rater.objects.filter(Q(labeler__in=names) | Q(pseudonym__in=is_pseudonym), project=project):
        by_name |= {str(rater.pseudonym): rater} | ({rater.labeler: rater} if rater.labeler else {})
    if unknown := sorted(set(names) - by_name.keys()):
        raise ApiProblem(f"Unknown rater: {', '.join(unknown)}. Use pseudonyms of this project.")
    return list({by_name[name].pk: by_name[name] for name in names}.values())
