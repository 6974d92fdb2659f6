"""The API tokens with which programs of members reach a project, for owners."""

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import tokens
from accounts.models import ApiToken
from dashboard.access import post_view, safe_view
from dashboard.render import project_page
from people.models import Membership
from people.roles import Action


@safe_view(Action.CLOSE)
def show_api_tokens(request: HttpRequest, actor: Membership) -> HttpResponse:
    rows = _list_tokens(actor)
    return project_page(request, actor, "dashboard/api_tokens.html", here="members", tokens=rows)


@post_view(Action.CLOSE)
def revoke_api_token(request: HttpRequest, actor: Membership, token: int) -> HttpResponse:
    """Revoke a token of this project. Only its user can revoke a token for all projects."""
    row = get_object_or_404(_list_tokens(actor).filter(project=actor.project_id), pk=token)
    tokens.revoke_api_token(token=row, by=actor.user, now=timezone.now())
    messages.success(request, _("Token “%(name)s” revoked.") % {"name": row.name})
    return redirect("dashboard:api_tokens", actor.project.slug)


def _list_tokens(actor: Membership) -> QuerySet[ApiToken]:
    members = Membership.objects.active().filter(project=actor.project_id).values_list("user_id", flat=True)
    return tokens.list_project_tokens(project_id=actor.project_id, user_ids=members, now=timezone.now())
