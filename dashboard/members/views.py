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

from dashboard import access, render
from dashboard.forms import InviteForm, RoleForm
from dashboard.members import page
from labeling import onboarding
from labeling.models import Rater
from people import invitations, members, roles
from people.models import Invitation, Membership
from people.roles import Action


@require_safe
@never_cache
def show_members(request: HttpRequest, slug: str) -> HttpResponse:
    return _render_members(request, access.membership_or_404(request, slug, Action.INVITE))


@require_POST
@never_cache
def create_invitation(request: HttpRequest, slug: str) -> HttpResponse:
    """Answers with the page itself: the link is seen this once, and stands in no session and no address."""
    actor = access.membership_or_404(request, slug, Action.INVITE)
    form = InviteForm(request.POST, actor=actor)
    if not form.is_valid():
        return _render_members(request, actor, status=422, form=form)
    invitation, token = invitations.create_invitation(
        project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data
    )
    link = request.build_absolute_uri(reverse("annotate:join", args=[token]))
    return _render_members(request, actor, status=201, link=link, invitation=invitation)


@require_POST
def revoke_invitation(request: HttpRequest, slug: str, invitation: int) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.INVITE)
    found = get_object_or_404(Invitation, project=actor.project, pk=invitation)
    invitations.revoke_invitation(invitation=found, by=actor.user, now=timezone.now())
    messages.success(request, _("The invitation lets nobody in any more."))
    return redirect("dashboard:members", slug)


@require_POST
def change_member_role(request: HttpRequest, slug: str, member: int) -> HttpResponse:
    actor, found = _load_member(request, slug, member)
    form = RoleForm(request.POST, actor=actor)
    if not form.is_valid():
        return _render_members(request, actor, status=422, problem=_("Choose one of the roles that you may give."))
    try:
        members.change_role(membership=found, role=form.cleaned_data["role"], by=actor.user, now=timezone.now())
    except members.LastOwner:
        return _render_members(request, actor, status=422, problem=_last_owner_error())
    told = {"person": found.user, "role": form.cleaned_data["role"].label}
    messages.success(request, _("%(person)s is %(role)s now.") % told)
    return redirect("dashboard:members", slug)


@require_POST
def remove_member(request: HttpRequest, slug: str, member: int) -> HttpResponse:
    actor, found = _load_member(request, slug, member)
    try:
        members.remove_member(membership=found, by=actor.user, now=timezone.now())
    except members.LastOwner:
        return _render_members(request, actor, status=422, problem=_last_owner_error())
    told = {"person": found.user}
    messages.success(request, _("%(person)s no longer belongs to the project. Their ratings stay.") % told)
    return redirect("dashboard:members", slug)


@require_POST
def allow_screening_attempt(request: HttpRequest, slug: str, member: int) -> HttpResponse:
    """Another attempt at the screening, for somebody who did not pass it."""
    actor, found = _load_member(request, slug, member)
    rater = _get_managed_rater(actor, found)
    if onboarding.allow_another_attempt(rater_id=rater.pk, by=actor.user, now=timezone.now()):
        messages.success(request, _("%(person)s can try the screening again.") % {"person": found.user})
    return redirect("dashboard:members", slug)


@require_POST
def admit_member(request: HttpRequest, slug: str, member: int) -> HttpResponse:
    """Into the work without training and screening, for somebody whom the lead knows."""
    actor, found = _load_member(request, slug, member)
    rater = _get_managed_rater(actor, found)
    onboarding.admit_rater(rater_id=rater.pk, by=actor.user, now=timezone.now())
    messages.success(request, _("%(person)s works without training and screening.") % {"person": found.user})
    return redirect("dashboard:members", slug)


def _get_managed_rater(actor: Membership, found: Membership) -> Rater:
    if not roles.may_grant(actor, found.role):
        raise roles.NotAllowed(_("You cannot decide about this person."))
    return get_object_or_404(Rater, project=actor.project, user=found.user_id)


@require_POST
@never_cache
def create_reset_link(request: HttpRequest, slug: str, member: int) -> HttpResponse:
    actor, found = _load_member(request, slug, member)
    token = members.create_reset_link(membership=found, by=actor.user, now=timezone.now())
    link = request.build_absolute_uri(reverse("new_password", args=[token]))
    return _render_members(request, actor, status=201, link=link, person=found.user)


@require_POST
def leave_project(request: HttpRequest, slug: str) -> HttpResponse:
    membership = access.membership_or_404(request, slug)
    try:
        members.leave_project(membership=membership, now=timezone.now())
    except members.LastOwner:
        return _render_members(request, membership, status=422, problem=_last_owner_error())
    messages.success(request, _("You have left “%(project)s”.") % {"project": membership.project.name})
    return redirect("annotate:home")


def _load_member(request: HttpRequest, slug: str, member: int) -> tuple[Membership, Membership]:
    actor = access.membership_or_404(request, slug, Action.INVITE)
    active = Membership.objects.active().select_related("project", "user")
    return actor, get_object_or_404(active, project=actor.project, pk=member)


def _render_members(request: HttpRequest, actor: Membership, *, status: int = 200, **told: Any) -> HttpResponse:
    told.setdefault("form", InviteForm(actor=actor))
    invited = page.load_open_invitations(actor, now=timezone.now())
    people = page.load_members(actor, request.GET)
    return render.project_page(
        request,
        actor,
        "dashboard/members.html",
        here="members",
        status=status,
        people=people,
        rows=people.page,
        invitations=invited,
        **told,
    )


def _last_owner_error() -> str:
    return _("A project keeps one owner at least. Make somebody else owner first.")
