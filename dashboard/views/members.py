"""Members of a project: invite, change roles, remove, and help people through onboarding."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from accounts import factors
from accounts.confirmation import require_confirmation
from dashboard import paging
from dashboard.access import form_view, membership_or_404, post_view, safe_view
from dashboard.render import project_page
from labeling import gates, onboarding
from labeling.gates import OnboardingGate
from labeling.models import Rater, ScreeningResult
from labeling.models.rater import RaterStage
from people import crowd_workers, invitations, members, roles
from people.models import Invitation, Membership, Role, WorkerDevice, WorkerId
from people.roles import Action

PAGE_SIZE = 100  # annotators per page
_ROLE_RANK = Case(*[When(role=role, then=Value(n)) for n, role in enumerate(Role)], output_field=IntegerField())


class RoleForm(forms.Form):
    """A role that the actor may grant."""

    excluded: ClassVar[frozenset[Role]] = frozenset()

    role = forms.ChoiceField(label=_("Role"))

    def __init__(self, *args: Any, actor: Membership, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [
            (role.value, role.label)
            for role in reversed(Role)
            if roles.may_grant(actor, role) and role not in self.excluded
        ]
        self.fields["role"].choices = choices  # type: ignore[attr-defined]  # it is a ChoiceField

    def clean_role(self) -> Role:
        return Role(self.cleaned_data["role"])


class InviteForm(RoleForm):
    excluded = frozenset({Role.OWNER})

    uses_allowed = forms.IntegerField(label=_("Number of people"), min_value=1, max_value=10_000, initial=1)
    days = forms.IntegerField(label=_("Valid for (days)"), min_value=1, max_value=365, initial=14)
    note = forms.CharField(label=_("Note"), max_length=100, required=False, help_text=_("Only leads see it."))


@dataclass(frozen=True)
class MemberRow:
    membership: Membership
    rater: Rater | None
    is_oneself: bool
    may_be_managed: bool
    may_be_reset: bool
    has_second_factor: bool
    choices: tuple[Role, ...]
    gate: OnboardingGate | None  # the rater's next onboarding step; None for other members
    result: ScreeningResult | None  # of the last screening attempt
    worker: str  # worker ID on the crowd platform
    devices: list[WorkerDevice]  # browsers from which the worker came

    @property
    def waiting_devices(self) -> list[WorkerDevice]:
        return [each for each in self.devices if each.released_at is None]

    @property
    def may_be_admitted(self) -> bool:
        return self.may_be_managed and self.rater is not None and self.rater.stage != RaterStage.WORKING

    @property
    def may_try_again(self) -> bool:
        return self.may_be_managed and self.gate == OnboardingGate.FAILED


@dataclass(frozen=True)
class MembersPage:
    rows: Sequence[MemberRow]
    page: paging.KeysetPage[Membership]  # of annotators
    n: int  # members on all pages
    search: str


@safe_view(Action.INVITE)
def show_members(request: HttpRequest, actor: Membership) -> HttpResponse:
    return _render_members(request, actor)


@require_confirmation()
@post_view(Action.INVITE)
def create_invitation(request: HttpRequest, actor: Membership) -> HttpResponse:
    """Answer with the page instead of a redirect, so that the secret link is in no session and no URL."""
    form = InviteForm(request.POST, actor=actor)
    if not form.is_valid():
        return _render_members(request, actor, status=422, form=form)
    invitation, token = invitations.create_invitation(
        project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data
    )
    link = request.build_absolute_uri(reverse("annotate:join", args=[token]))
    return _render_members(request, actor, status=201, link=link, invitation=invitation)


@post_view(Action.INVITE)
def revoke_invitation(request: HttpRequest, actor: Membership, invitation: int) -> HttpResponse:
    row = get_object_or_404(Invitation, project=actor.project, pk=invitation)
    invitations.revoke_invitation(invitation=row, by=actor.user, now=timezone.now())
    messages.success(request, _("Invitation revoked."))
    return _redirect_to_members(actor)


@require_confirmation()
@post_view(Action.INVITE)
def change_member_role(request: HttpRequest, actor: Membership, member: int) -> HttpResponse:
    target, form = _load_member(actor, member), RoleForm(request.POST, actor=actor)
    if not form.is_valid():
        problem = _("Your role does not allow you to assign this role. Choose one from the list.")
        return _render_members(request, actor, status=422, problem=problem)
    role = form.cleaned_data["role"]
    try:
        members.change_role(membership=target, role=role, by=actor.user, now=timezone.now())
    except members.LastOwner as error:
        return _render_members(request, actor, status=422, problem=str(error))
    names = {"person": target.user, "role": role.label}
    messages.success(request, _("%(person)s now has the role %(role)s.") % names)
    return _redirect_to_members(actor)


@require_confirmation()
@form_view(Action.INVITE)
def remove_member(request: HttpRequest, actor: Membership, member: int) -> HttpResponse:
    """Explain the effect of a removal; remove the member after confirmation."""
    target = _load_member(actor, member)
    if request.method != "POST":
        return project_page(request, actor, "dashboard/remove_member.html", here="members", member=target)
    try:
        members.remove_member(membership=target, by=actor.user, now=timezone.now())
    except members.LastOwner as error:
        return _render_members(request, actor, status=422, problem=str(error))
    messages.success(request, _("%(person)s was removed. Their labels are kept.") % {"person": target.user})
    return _redirect_to_members(actor)


@require_confirmation()
@post_view(Action.INVITE)
def restore_member(request: HttpRequest, actor: Membership, member: int) -> HttpResponse:
    target = get_object_or_404(Membership.objects.select_related("project", "user"), project=actor.project, pk=member)
    members.restore_member(membership=target, by=actor.user, now=timezone.now())
    messages.success(request, _("%(person)s was restored.") % {"person": target.user})
    return _redirect_to_members(actor)


@post_view(Action.INVITE)
def allow_screening_attempt(request: HttpRequest, actor: Membership, member: int) -> HttpResponse:
    """Allow another screening attempt to a member who failed."""
    rater = _load_managed_rater(actor, member)
    if onboarding.allow_another_attempt(rater_id=rater.pk, by=actor.user, now=timezone.now()):
        messages.success(request, _("%(person)s can take the screening again.") % {"person": rater.user})
    return _redirect_to_members(actor)


@post_view(Action.INVITE)
def admit_member(request: HttpRequest, actor: Membership, member: int) -> HttpResponse:
    """Admit a member to work without training and screening."""
    rater = _load_managed_rater(actor, member)
    onboarding.admit_rater(rater_id=rater.pk, by=actor.user, now=timezone.now())
    messages.success(request, _("%(person)s can now work without training and screening.") % {"person": rater.user})
    return _redirect_to_members(actor)


@post_view(Action.INVITE)
def release_device(request: HttpRequest, actor: Membership, member: int, device: int) -> HttpResponse:
    """Let a crowd worker enter from another browser."""
    target = _load_member(actor, member)
    rows = WorkerDevice.objects.filter(worker__user=target.user_id, worker__project=actor.project)
    crowd_workers.release_device(device=get_object_or_404(rows, pk=device), by=actor.user, now=timezone.now())
    messages.success(request, _("%(person)s can now open the study in that browser.") % {"person": target.user})
    return _redirect_to_members(actor)


@require_confirmation()
@post_view(Action.INVITE)
def create_reset_link(request: HttpRequest, actor: Membership, member: int) -> HttpResponse:
    target = _load_member(actor, member)
    token = members.create_reset_link(membership=target, by=actor.user, now=timezone.now())
    link = request.build_absolute_uri(reverse("new_password", args=[token]))
    return _render_members(request, actor, status=201, link=link, person=target.user)


@require_confirmation()
@post_view(Action.INVITE)
def reset_factors(request: HttpRequest, actor: Membership, member: int) -> HttpResponse:
    """Remove the second factors of a member who lost them."""
    target = _load_member(actor, member)
    members.reset_factors(membership=target, by=actor.user, now=timezone.now())
    messages.success(request, _("Two-step login of %(person)s was reset.") % {"person": target.user})
    return _redirect_to_members(actor)


@require_POST
def leave_project(request: HttpRequest, slug: str) -> HttpResponse:
    membership = membership_or_404(request, slug)
    try:
        members.leave_project(membership=membership, now=timezone.now())
    except members.LastOwner as error:
        return _render_members(request, membership, status=422, problem=str(error))
    messages.success(request, _("You have left “%(project)s”.") % {"project": membership.project.name})
    return redirect("annotate:home")


def _redirect_to_members(actor: Membership) -> HttpResponse:
    return redirect("dashboard:members", actor.project.slug)


def _load_member(actor: Membership, member: int) -> Membership:
    active = Membership.objects.active().select_related("project", "user")
    return get_object_or_404(active, project=actor.project, pk=member)


def _load_managed_rater(actor: Membership, member: int) -> Rater:
    target = _load_member(actor, member)
    if not roles.may_manage(actor, target.role):
        raise roles.NotAllowed(_("Your role does not allow you to manage this person."))
    return get_object_or_404(Rater.objects.select_related("user"), project=actor.project, user=target.user_id)


def _render_members(request: HttpRequest, actor: Membership, *, status: int = 200, **context: Any) -> HttpResponse:
    context.setdefault("form", InviteForm(actor=actor))
    return project_page(
        request,
        actor,
        "dashboard/members.html",
        here="members",
        status=status,
        may_reset_factors=actor.role == Role.OWNER,
        members=load_members(actor, request.GET),
        invitations=_load_open_invitations(actor, timezone.now()),
        signing_key=crowd_workers.compute_signing_key(actor.project) if actor.project.signature_parameter else "",
        removed=[each for each in members.list_removed(actor.project) if roles.may_grant(actor, each.role)],
        **context,
    )


def load_members(actor: Membership, query: QueryDict) -> MembersPage:
    """Load the members with other roles first, then annotators page by page."""
    everyone = Membership.objects.active().filter(project=actor.project_id)
    search = query.get("q", "")[:150].replace("\0", "").strip()
    matches = _filter_by_name(everyone, search, actor.project_id).select_related("user")
    page = paging.paginate(matches.filter(role=Role.ANNOTATOR), query, size=PAGE_SIZE)
    memberships = sorted(page.rows, key=lambda each: each.user.username)
    if not page.newer:
        memberships[:0] = matches.exclude(role=Role.ANNOTATOR).order_by(_ROLE_RANK, "user__username")
    return MembersPage(_build_rows(actor, memberships), page, everyone.count(), search)


def _filter_by_name(rows: QuerySet[Membership], search: str, project_id: int) -> QuerySet[Membership]:
    """Filter by a part of the name, or by the worker ID on this project's crowd platform."""
    if not search:
        return rows
    is_worker = Q(user__worker_id__worker=search, user__worker_id__project=project_id)
    return rows.filter(Q(user__name__icontains=search) | Q(user__username__icontains=search) | is_worker)


def _build_rows(actor: Membership, memberships: Sequence[Membership]) -> list[MemberRow]:
    users = [each.user for each in memberships]
    raters = {rater.user_id: rater for rater in Rater.objects.filter(project=actor.project_id, user__in=users)}
    resettable = members.find_resettable(actor=actor, among=users)
    choices = tuple(role for role in Role if roles.may_grant(actor, role))
    results = {
        each.rater_id: each for each in ScreeningResult.objects.filter(rater__in=raters.values()).order_by("attempt")
    }
    worker_ids = WorkerId.objects.filter(project=actor.project_id, user__in=users).prefetch_related("devices")
    with_factor = factors.find_users_with_factors(users)
    workers = {each.user_id: each for each in worker_ids}
    return [
        MemberRow(
            membership=each,
            rater=rater,
            is_oneself=each.user_id == actor.user_id,
            may_be_managed=each.user_id != actor.user_id and roles.may_manage(actor, each.role),
            has_second_factor=each.user_id in with_factor,
            may_be_reset=each.user_id != actor.user_id and each.user_id in resettable,
            choices=choices,
            gate=gates.next_gate(rater=rater, project=actor.project) if rater else None,
            result=results.get(rater.pk) if rater else None,
            worker=workers[each.user_id].worker if each.user_id in workers else "",
            devices=list(workers[each.user_id].devices.all()) if each.user_id in workers else [],
        )
        for each in memberships
        for rater in [raters.get(each.user_id)]
    ]


def _load_open_invitations(actor: Membership, now: dt.datetime) -> list[tuple[Invitation, bool]]:
    """Load each open invitation, newest first, with whether the actor may revoke it."""
    rows = invitations.open_invitations(now=now).filter(project=actor.project_id).select_related("made_by")
    return [(each, invitations.may_revoke(actor, each)) for each in rows.order_by("-made_at", "-pk")]
