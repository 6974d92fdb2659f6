"""The people of a project as the one who manages them sees them: whoever does more than rate first, then annotators, a
page at a time. Reads alone; every page costs the same, however many there are."""

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

PAGE_SIZE = 100  # annotators on a page
_ROLE_RANK = Case(*[When(role=role, then=Value(n)) for n, role in enumerate(Role)], output_field=IntegerField())


@dataclass(frozen=True)
class MemberRow:
    membership: Membership
    rater: Rater | None
    is_oneself: bool
    may_be_managed: bool
    may_be_reset: bool
    choices: tuple[Role, ...]
    station: OnboardingGate | None  # where a rater stands; None for who does not rate
    result: ScreeningResult | None  # of the last attempt at the screening
    worker: str  # the id on the crowd platform

    @property
    def may_be_admitted(self) -> bool:
        return self.may_be_managed and self.rater is not None and self.rater.stage != RaterStage.WORKING

    @property
    def may_try_again(self) -> bool:
        return self.may_be_managed and self.station == OnboardingGate.FAILED


@dataclass(frozen=True)
class MembersPage:
    rows: Sequence[MemberRow]
    page: paging.KeysetPage[Membership]  # of the annotators
    n: int  # who belong to the project, also on other pages
    q: str  # who was looked for


def load_members(actor: Membership, asked: QueryDict) -> MembersPage:
    every, q = (
        Membership.objects.active().filter(project=actor.project_id),
        asked.get("q", "")[:150].replace("\0", "").strip(),
    )
    found = _filter_by_name(every, q, actor.project_id).select_related("user") if q else every.select_related("user")
    page = paging.paginate(found.filter(role=Role.ANNOTATOR), asked, size=PAGE_SIZE)
    shown = sorted(page.rows, key=lambda each: each.user.username)
    if not page.newer:
        shown[:0] = found.exclude(role=Role.ANNOTATOR).order_by(_ROLE_RANK, "user__username")
    return MembersPage(_build_rows(actor, shown), page, every.count(), q)


def _filter_by_name(rows: QuerySet[Membership], q: str, project_id: int) -> QuerySet[Membership]:
    """By a part of the name, or by the id on this project's crowd platform."""
    by_id = Q(user__worker_id__worker=q, user__worker_id__project=project_id)
    return rows.filter(Q(user__name__icontains=q) | Q(user__username__icontains=q) | by_id)


def _build_rows(actor: Membership, memberships: Sequence[Membership]) -> list[MemberRow]:
    users = [each.user for each in memberships]
    raters = {rater.user_id: rater for rater in Rater.objects.filter(project=actor.project_id, user__in=users)}
    reset = members.find_resettable(actor=actor, among=users)
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
            may_be_reset=each.user_id != actor.user_id and each.user_id in reset,
            choices=choices,
            station=gates.next_gate(rater=rater, project=actor.project) if rater else None,
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
    found = invitations.open_invitations(now=now).filter(project=actor.project_id).select_related("made_by")
    return [OpenInvitation(each, roles.may_grant(actor, each.role)) for each in found.order_by("-made_at", "-pk")]
