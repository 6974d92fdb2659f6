"""Who may come in: each page of a project finds its row from the person, and asks the one table."""

from typing import cast

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from accounts.models import User
from people import roles
from people.models import Membership
from people.roles import Action


def membership_or_404(request: HttpRequest, slug: str, action: Action | None = None) -> Membership:
    """The membership that this person comes with, the project on it. Who does not belong sees no page at all (404);
    whose role does not do this is told who does (403)."""
    user = cast(User, request.user)
    membership = get_object_or_404(Membership.objects.of(user), project__slug=slug)
    membership.user = user  # read already: no second query for it
    if action is not None:
        roles.require_action(membership, action)
    return membership
