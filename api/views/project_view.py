"""What every view of a project does first: find it from the person behind the token, and ask the one table."""

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
    """Who does not belong sees no project at all (404); whose role does not do this is told who does (403)."""

    scopes: ClassVar[Mapping[str, Scope]]
    actions: ClassVar[Mapping[str, Action]]

    def enter(self, request: Request, slug: str) -> Membership:
        user = cast(User, request.user)
        membership = get_object_or_404(Membership.objects.of(user).select_related("project"), project__slug=slug)
        roles.require_action(membership, self.actions["GET" if request.method == "HEAD" else cast(str, request.method)])
        return membership
