"""The base of views on a project: find the user's membership and check their role."""

from collections.abc import Mapping
from typing import ClassVar, cast

from django.shortcuts import get_object_or_404
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts.models import Scope, User
from people import roles
from people.models import Membership
from people.roles import Action


class ProjectView(APIView):
    """Respond with 404 to users who are not members, and with 403 to members whose role does not permit the method."""

    scopes: ClassVar[Mapping[str, Scope]]
    actions: ClassVar[Mapping[str, Action]]

    def enter(self, request: Request, slug: str) -> Membership:
        user = cast(User, request.user)
        membership = get_object_or_404(Membership.objects.of(user).select_related("project"), project__slug=slug)
        roles.require_action(membership, self.actions["GET" if request.method == "HEAD" else cast(str, request.method)])
        return membership
