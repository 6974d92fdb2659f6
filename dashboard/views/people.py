"""Who belongs to a project, for those who manage them."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import door, page, roster
from dashboard.forms import InviteForm, RoleForm
from labeling import admission
from labeling.models import Rater
from people import invitations, members, roles
from people.models import Invitation, Membership
from people.roles import Action


@require_safe
@never_cache
def members_page(request: HttpRequest, slug: str) -> HttpResponse:
    return _page(request, door.enter(request, slug, Action.INVITE))


@require_POST
@never_cache
def invite(request: HttpRequest, slug: str) -> HttpResponse:
    """Answers with the page itself: the link is seen this once, and stands in no session and no address."""
    actor = door.enter(request, slug, Action.INVITE)
    form = InviteForm(request.POST, actor=actor)
    if not form.is_valid():
        return _page(request, actor, status=422, form=form)
    invitation, token = invitations.invite(
        project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data
    )
    link = request.build_absolute_uri(reverse("annotate:join", args=[token]))
    return _page(request, actor, status=201, link=link, invitation=invitation)


@require_POST
def revoke(request: HttpRequest, slug: str, invitation: int) -> HttpResponse:
    actor = door.enter(request, slug, Action.INVITE)
    found = get_object_or_404(Invitation, project=actor.project, pk=invitation)
    invitations.revoke(invitation=found, by=actor.user, now=timezone.now())
    messages.success(request, _("The invitation lets nobody in any more."))
    return redirect("dashboard:people", slug)


@require_POST
def change_role(request: HttpRequest, slug: str, member: int) -> HttpResponse:
    actor, found = _pair(request, slug, member)
    form = RoleForm(request.POST, actor=actor)
    if not form.is_valid():
        return _page(request, actor, status=422, problem=_("Choose one of the roles that you may give."))
    try:
        members.change_role(membership=found, role=form.cleaned_data["role"], by=actor.user, now=timezone.now())
    except members.LastOwner:
        return _page(request, actor, status=422, problem=_last_owner())
    told = {"person": found.user, "role": form.cleaned_data["role"].label}
    messages.success(request, _("%(person)s is %(role)s now.") % told)
    return redirect("dashboard:people", slug)


@require_POST
def remove(request: HttpRequest, slug: str, member: int) -> HttpResponse:
    actor, found = _pair(request, slug, member)
    try:
        members.remove(membership=found, by=actor.user, now=timezone.now())
    except members.LastOwner:
        return _page(request, actor, status=422, problem=_last_owner())
    told = {"person": found.user}
    messages.success(request, _("%(person)s no longer belongs to the project. Their ratings stay.") % told)
    return redirect("dashboard:people", slug)


@require_POST
def allow_attempt(request: HttpRequest, slug: str, member: int) -> HttpResponse:
    """Another attempt at the screening, for somebody who did not pass it."""
    actor, found = _pair(request, slug, member)
    rater = _rater_to_manage(actor, found)
    if admission.allow_attempt(rater_id=rater.pk, by=actor.user, now=timezone.now()):
        messages.success(request, _("%(person)s can try the screening again.") % {"person": found.user})
    return redirect("dashboard:people", slug)


@require_POST
def admit(request: HttpRequest, slug: str, member: int) -> HttpResponse:
    """Into the work without training and screening, for somebody whom the lead knows."""
    actor, found = _pair(request, slug, member)
    rater = _rater_to_manage(actor, found)
    admission.admit(rater_id=rater.pk, by=actor.user, now=timezone.now())
    messages.success(request, _("%(person)s works without training and screening.") % {"person": found.user})
    return redirect("dashboard:people", slug)


def _rater_to_manage(actor: Membership, found: Membership) -> Rater:
    if not roles.gives(actor, found.role):
        raise roles.NotAllowed(_("You cannot decide about this person."))
    return get_object_or_404(Rater, project=actor.project, user=found.user_id)


@require_POST
@never_cache
def reset_link(request: HttpRequest, slug: str, member: int) -> HttpResponse:
    actor, found = _pair(request, slug, member)
    token = members.make_reset_link(membership=found, by=actor.user, now=timezone.now())
    link = request.build_absolute_uri(reverse("new_password", args=[token]))
    return _page(request, actor, status=201, link=link, person=found.user)


@require_POST
def leave(request: HttpRequest, slug: str) -> HttpResponse:
    membership = door.enter(request, slug)
    try:
        members.leave(membership=membership, now=timezone.now())
    except members.LastOwner:
        return _page(request, membership, status=422, problem=_last_owner())
    messages.success(request, _("You have left “%(project)s”.") % {"project": membership.project.name})
    return redirect("annotate:home")


def _pair(request: HttpRequest, slug: str, member: int) -> tuple[Membership, Membership]:
    actor = door.enter(request, slug, Action.INVITE)
    active = Membership.objects.active().select_related("project", "user")
    return actor, get_object_or_404(active, project=actor.project, pk=member)


def _page(request: HttpRequest, actor: Membership, *, status: int = 200, **told: Any) -> HttpResponse:
    told.setdefault("form", InviteForm(actor=actor))
    invited = roster.open_invitations(actor, now=timezone.now())
    people = roster.of(actor, request.GET)
    return page.show(
        request,
        actor,
        "dashboard/people.html",
        here="people",
        status=status,
        people=people,
        rows=people.page,
        invitations=invited,
        **told,
    )


def _last_owner() -> str:
    return _("A project keeps one owner at least. Make somebody else owner first.")
