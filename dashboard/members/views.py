"""Members of a project: invite, change roles, remove, and help people through onboarding."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard.access import membership_or_404
from dashboard.members import page
from dashboard.members.forms import InviteForm, RoleForm
from dashboard.render import project_page
from labeling import onboarding
from labeling.models import Rater
from people import invitations, members, roles
from people.models import Invitation, Membership
from people.roles import Action


@require_safe
@never_cache
def show_members(request: HttpRequest, slug: str) -> HttpResponse:
    return _render_members(request, membership_or_404(request, slug, Action.INVITE))


@require_POST
@never_cache
def create_invitation(request: HttpRequest, slug: str) -> HttpResponse:
    """Answer with the page instead of a redirect, so that the secret link is in no session and no URL."""
    actor = membership_or_404(request, slug, Action.INVITE)
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
    actor = membership_or_404(request, slug, Action.INVITE)
    row = get_object_or_404(Invitation, project=actor.project, pk=invitation)
    invitations.revoke_invitation(invitation=row, by=actor.user, now=timezone.now())
    messages.success(request, _("Invitation revoked."))
    return redirect("dashboard:members", slug)


@require_POST
def change_member_role(request: HttpRequest, slug: str, member: int) -> HttpResponse:
    actor, target = _load_member(request, slug, member)
    form = RoleForm(request.POST, actor=actor)
    if not form.is_valid():
        return _render_members(
            request, actor, status=422, problem=_("You may not assign this role. Choose one from the list.")
        )
    try:
        members.change_role(membership=target, role=form.cleaned_data["role"], by=actor.user, now=timezone.now())
    except members.LastOwner:
        return _render_members(request, actor, status=422, problem=_last_owner_error())
    names = {"person": target.user, "role": form.cleaned_data["role"].label}
    messages.success(request, _("%(person)s now has the role %(role)s.") % names)
    return redirect("dashboard:members", slug)


@require_POST
def remove_member(request: HttpRequest, slug: str, member: int) -> HttpResponse:
    actor, target = _load_member(request, slug, member)
    try:
        members.remove_member(membership=target, by=actor.user, now=timezone.now())
    except members.LastOwner:
        return _render_members(request, actor, status=422, problem=_last_owner_error())
    messages.success(request, _("%(person)s was removed. Their labels are kept.") % {"person": target.user})
    return redirect("dashboard:members", slug)


@require_POST
def allow_screening_attempt(request: HttpRequest, slug: str, member: int) -> HttpResponse:
    """Allow another screening attempt to a member who failed."""
    actor, target = _load_member(request, slug, member)
    rater = _get_managed_rater(actor, target)
    if onboarding.allow_another_attempt(rater_id=rater.pk, by=actor.user, now=timezone.now()):
        messages.success(request, _("%(person)s can take the screening again.") % {"person": target.user})
    return redirect("dashboard:members", slug)


@require_POST
def admit_member(request: HttpRequest, slug: str, member: int) -> HttpResponse:
    """Admit a member to work without training and screening."""
    actor, target = _load_member(request, slug, member)
    rater = _get_managed_rater(actor, target)
    onboarding.admit_rater(rater_id=rater.pk, by=actor.user, now=timezone.now())
    messages.success(request, _("%(person)s can now work without training and screening.") % {"person": target.user})
    return redirect("dashboard:members", slug)


def _get_managed_rater(actor: Membership, target: Membership) -> Rater:
    if not roles.may_grant(actor, target.role):
        raise roles.NotAllowed(_("Your role does not allow you to manage this person."))
    return get_object_or_404(Rater, project=actor.project, user=target.user_id)


@require_POST
@never_cache
def create_reset_link(request: HttpRequest, slug: str, member: int) -> HttpResponse:
    actor, target = _load_member(request, slug, member)
    token = members.create_reset_link(membership=target, by=actor.user, now=timezone.now())
    link = request.build_absolute_uri(reverse("new_password", args=[token]))
    return _render_members(request, actor, status=201, link=link, person=target.user)


@require_POST
def leave_project(request: HttpRequest, slug: str) -> HttpResponse:
    membership = membership_or_404(request, slug)
    try:
        members.leave_project(membership=membership, now=timezone.now())
    except members.LastOwner:
        return _render_members(request, membership, status=422, problem=_last_owner_error())
    messages.success(request, _("You have left “%(project)s”.") % {"project": membership.project.name})
    return redirect("annotate:home")


def _load_member(request: HttpRequest, slug: str, member: int) -> tuple[Membership, Membership]:
    actor = membership_or_404(request, slug, Action.INVITE)
    active = Membership.objects.active().select_related("project", "user")
    return actor, get_object_or_404(active, project=actor.project, pk=member)


def _render_members(request: HttpRequest, actor: Membership, *, status: int = 200, **context: Any) -> HttpResponse:
    context.setdefault("form", InviteForm(actor=actor))
    return project_page(
        request,
        actor,
        "dashboard/members.html",
        here="members",
        status=status,
        members=page.load_members(actor, request.GET),
        invitations=page.load_open_invitations(actor, now=timezone.now()),
        **context,
    )


def _last_owner_error() -> str:
    return _("A project needs at least one owner. Make another member an owner first.")
