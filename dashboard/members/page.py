"""Data of the members page: other roles first, then annotators page by page. Writes nothing."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.http import QueryDict

from dashboard import paging
from labeling import gates
from labeling.gates import OnboardingGate
from labeling.models import Rater, ScreeningResult
from labeling.models.rater import RaterStage
from people import invitations, members, roles
from people.models import Invitation, Membership, Role, WorkerId

PAGE_SIZE = 100  # annotators per page
_ROLE_RANK = Case(*[When(role=role, then=Value(n)) for n, role in enumerate(Role)], output_field=IntegerField())


@dataclass(frozen=True)
class MemberRow:
    membership: Membership
    rater: Rater | None
    is_oneself: bool
    may_be_managed: bool
    may_be_reset: bool
    choices: tuple[Role, ...]
    gate: OnboardingGate | None  # the rater's next onboarding step; None for other members
    result: ScreeningResult | None  # of the last screening attempt
    worker: str  # worker ID on the crowd platform

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


def load_members(actor: Membership, query: QueryDict) -> MembersPage:
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
    workers = dict(WorkerId.objects.filter(project=actor.project_id, user__in=users).values_list("user_id", "worker"))
    return [
        MemberRow(
            membership=each,
            rater=rater,
            is_oneself=each.user_id == actor.user_id,
            may_be_managed=each.user_id != actor.user_id and roles.may_grant(actor, each.role),
            may_be_reset=each.user_id != actor.user_id and each.user_id in resettable,
            choices=choices,
            gate=gates.next_gate(rater=rater, project=actor.project) if rater else None,
            result=results.get(rater.pk) if rater else None,
            worker=workers.get(each.user_id, ""),
        )
        for each in memberships
        for rater in [raters.get(each.user_id)]
    ]


@dataclass(frozen=True)
class OpenInvitation:
    invitation: Invitation
    may_be_revoked: bool


def load_open_invitations(actor: Membership, *, now: dt.datetime) -> list[OpenInvitation]:
    rows = invitations.open_invitations(now=now).filter(project=actor.project_id).select_related("made_by")
    return [OpenInvitation(each, roles.may_grant(actor, each.role)) for each in rows.order_by("-made_at", "-pk")]
