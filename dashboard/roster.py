"""The people of a project as the one who manages them sees them. Reads alone, in as many queries for 3 as for 300."""

import datetime as dt
from dataclasses import dataclass

from django.db.models import Case, IntegerField, Value, When

from labeling.models import Rater
from people import members, roles
from people.models import Invitation, Membership, Role

_RANK = Case(*[When(role=role, then=Value(n)) for n, role in enumerate(Role)], output_field=IntegerField())


@dataclass(frozen=True)
class Row:
    membership: Membership
    rater: Rater | None
    is_oneself: bool
    may_be_managed: bool
    may_be_reset: bool
    choices: tuple[Role, ...]


def of(actor: Membership) -> list[Row]:
    memberships = list(
        Membership.objects.active()
        .filter(project=actor.project_id)
        .select_related("user")
        .order_by(_RANK, "user__username")
    )
    raters = {rater.user_id: rater for rater in Rater.objects.filter(project=actor.project_id, user__isnull=False)}
    reset = members.resettable(actor=actor, among=[each.user for each in memberships])
    choices = tuple(role for role in Role if roles.gives(actor, role))
    return [
        Row(
            membership=each,
            rater=raters.get(each.user_id),
            is_oneself=each.user_id == actor.user_id,
            may_be_managed=each.user_id != actor.user_id and roles.gives(actor, each.role),
            may_be_reset=each.user_id != actor.user_id and each.user_id in reset,
            choices=choices,
        )
        for each in memberships
    ]


@dataclass(frozen=True)
class OpenInvitation:
    invitation: Invitation
    may_be_revoked: bool


def open_invitations(actor: Membership, *, now: dt.datetime) -> list[OpenInvitation]:
    found = Invitation.objects.open(now).filter(project=actor.project_id).select_related("made_by")
    return [OpenInvitation(each, roles.gives(actor, each.role)) for each in found.order_by("-made_at", "-pk")]
