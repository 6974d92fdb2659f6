"""Access to the pages of a project, from the user's membership."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Concatenate, cast

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.models import User
from people import members, roles
from people.models import Membership
from people.roles import Action

MemberView = Callable[Concatenate[HttpRequest, Membership, ...], HttpResponse]
ProjectView = Callable[..., HttpResponse]


def membership_or_404(request: HttpRequest, slug: str, action: Action | None = None) -> Membership:
    """Return the user's membership with its project.

    Raises Http404 for a user who is not a member, and PermissionDenied if the role does not allow the action.
    """
    membership = members.load_membership(user=cast(User, request.user), slug=slug)
    if membership is None:
        raise Http404
    if action is not None:
        roles.require_action(membership, action)
    return membership


def safe_view(action: Action) -> Callable[[MemberView], ProjectView]:
    """Decorate a view that shows a page: it gets the user's membership in place of the project's slug."""
    return lambda view: require_safe(never_cache(_pass_membership(view, action)))


def post_view(action: Action, *, accepts_files: bool = False) -> Callable[[MemberView], ProjectView]:
    """Decorate a view that acts on a POST request: it gets the user's membership in place of the project's slug.

    A file in the request is refused before it is read, unless the view accepts files and the role allows the action.
    """

    def decorate(view: MemberView) -> ProjectView:
        project_view = require_POST(never_cache(_pass_membership(view, action)))
        if accepts_files:  # config.uploads asks it
            vars(project_view)["check_upload"] = partial(_check_upload, action=action)
        return project_view

    return decorate


def _check_upload(request: HttpRequest, *, slug: str, action: Action, **_others: Any) -> Membership:
    return membership_or_404(request, slug, action)


def form_view(action: Action, *, shown_to: Action | None = None) -> Callable[[MemberView], ProjectView]:
    """Decorate a view that shows a form and acts on it: it gets the membership in place of the project's slug.

    `shown_to` is the action that permits seeing the form, if it is not the one that permits sending it.
    """
    methods = require_http_methods(["GET", "HEAD", "POST"])
    return lambda view: methods(never_cache(_pass_membership(view, action, shown_to)))


def _pass_membership(view: MemberView, action: Action, shown_to: Action | None = None) -> ProjectView:
    @wraps(view)
    def project_view(request: HttpRequest, slug: str, **arguments: Any) -> HttpResponse:
        needed = shown_to if shown_to and request.method != "POST" else action
        return view(request, membership_or_404(request, slug, needed), **arguments)

    return project_view
