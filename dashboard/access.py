"""Access to the pages of a project, from the user's membership."""

from typing import cast

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from accounts.models import User
from people import roles
from people.models import Membership
from people.roles import Action


def membership_or_404(request: HttpRequest, slug: str, action: Action | None = None) -> Membership:
    """Return the user's membership with its project.

    Raises Http404 for a user who is not a member, and PermissionDenied if the role does not allow the action.
    """
    user = cast(User, request.user)
    membership = get_object_or_404(Membership.objects.of(user), project__slug=slug)
    membership.user = user  # saves a query
    if action is not None:
        roles.require_action(membership, action)
    return membership
