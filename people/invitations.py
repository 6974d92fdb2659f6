"""Invitation links. The only module that writes Invitation rows."""

import datetime as dt
import operator
from functools import reduce

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from accounts import tokens, users
from accounts.models import User
from events import audit_log
from labeling.models import Project
from people import members, roles
from people.models import Invitation, Membership, Role
from people.roles import NotAllowed


class InvitationInvalid(Exception):
    """The link is unknown, used up, revoked or expired."""


def create_invitation(
    *, project: Project, role: Role, uses_allowed: int = 1, days: int = 14, by: User, now: dt.datetime, note: str = ""
) -> tuple[Invitation, str]:
    """Create an invitation. Return it with its token, of which only the hash is stored."""
    if not roles.may_grant(members.get_membership(project=project, user=by), role) or role is Role.OWNER:
        raise NotAllowed(
            _("Your role does not allow you to invite people with the role %(role)s. Ask an owner.")
            % {"role": role.label}
        )
    token = tokens.generate_token()
    with transaction.atomic():
        invitation = Invitation.objects.create(
            project=project,
            role=role,
            token_digest=tokens.hash_token(token),
            note=note.strip()[:100],
            made_by=by,
            made_at=now,
            expires_at=now + dt.timedelta(days=days),
            uses_allowed=uses_allowed,
        )
        _log_event("invitation.made", invitation, by, now, role=role.value, uses_allowed=uses_allowed, days=days)
    return invitation, token


def open_invitations(*, now: dt.datetime) -> QuerySet[Invitation]:
    """Return valid invitations: the inviter is still a member and may still grant the role.

    Otherwise a removed or demoted lead could return, or keep inviting others, with an old link."""
    makers = Membership.objects.active().filter(project=OuterRef("project"), user=OuterRef("made_by"))
    may = (
        Q(Exists(makers.filter(role=maker)), role__in=sorted(grantable))
        for maker, grantable in roles.GRANTABLE_ROLES.items()
    )
    return Invitation.objects.open(now).filter(reduce(operator.or_, may))


def find_invitation(*, token: str, now: dt.datetime) -> Invitation | None:
    """Return the invitation if it is still valid, without using it up."""
    links = open_invitations(now=now).select_related("project", "made_by")
    return links.filter(token_digest=tokens.hash_token(token)).first()


def accept_invitation(*, token: str, user: User, now: dt.datetime) -> Membership:
    """Make `user` a member. An existing membership is returned unchanged and does not use the invitation up.

    A former member needs an invitation created after they left, so that a removed person cannot reuse an old link."""
    invitation = find_invitation(token=token, now=now)
    if invitation is None:
        raise InvitationInvalid
    with transaction.atomic():
        existing = members.lock_memberships(project=invitation.project).filter(user=user).first()
        left_at = existing.left_at if existing else None
        if existing is not None and left_at is None:
            return existing
        if left_at is not None and invitation.made_at < left_at:
            raise InvitationInvalid
        return add_invited(invitation=invitation, user=user, now=now)


def add_invited(*, invitation: Invitation, user: User, now: dt.datetime, **detail: bool) -> Membership:
    """Make `user` a member and count the use of the invitation.

    The update itself checks that a use is left, so concurrent visitors cannot exceed the limit."""
    if not open_invitations(now=now).filter(pk=invitation.pk).update(uses=F("uses") + 1):
        raise InvitationInvalid
    membership = members.add_member(project=invitation.project, user=user, role=Role(invitation.role), now=now)
    _log_event("invitation.accepted", invitation, user, now, role=invitation.role, **detail)
    return membership


def accept_with_new_account(
    *, token: str, username: str, password: str, now: dt.datetime, email: str = "", name: str = ""
) -> Membership:
    """Create an account and make it a member, in one transaction: an invalid invitation leaves no account behind."""
    with transaction.atomic():
        user = users.create_user(username=username, password=password, email=email, name=name, now=now)
        return accept_invitation(token=token, user=user, now=now)


def may_revoke(membership: Membership, invitation: Invitation) -> bool:
    """Whether a member may revoke an invitation: their own, or one to a role that they manage."""
    is_own = invitation.made_by_id == membership.user_id and roles.may_grant(membership, invitation.role)
    return is_own or roles.may_manage(membership, invitation.role)


def revoke_invitation(*, invitation: Invitation, by: User, now: dt.datetime) -> None:
    """Revoke an invitation. People who joined with it stay members."""
    if not may_revoke(members.get_membership(project=invitation.project, user=by), invitation):
        raise NotAllowed(_("Your role does not allow you to revoke this invitation. Ask an owner."))
    with transaction.atomic():
        if Invitation.objects.filter(pk=invitation.pk, revoked_at=None).update(revoked_at=now):
            _log_event("invitation.revoked", invitation, by, now)


def _log_event(what: str, invitation: Invitation, by: User, now: dt.datetime, **detail: str | int) -> None:
    subject = f"invitation:{invitation.pk}"
    audit_log.log_event(what=what, by=by, now=now, project=invitation.project_id, subject=subject, detail=detail)
