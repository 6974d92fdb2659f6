"""Links into a project. Alone writes Invitation rows."""

import datetime as dt
import operator
from functools import reduce

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from accounts import secret_tokens, users
from accounts.models import User
from events import audit_log
from labeling.models import Project
from people import members, roles
from people.models import Invitation, Membership, Role
from people.roles import NotAllowed


class InvitationInvalid(Exception):
    """The link was used up, revoked or is too old, or it never was one."""


def create_invitation(
    *, project: Project, role: Role, uses_allowed: int = 1, days: int = 14, by: User, now: dt.datetime, note: str = ""
) -> tuple[Invitation, str]:
    """A new invitation and its token, which is seen this once and kept nowhere."""
    if not roles.may_grant(members.get_membership(project=project, user=by), role) or role is Role.OWNER:
        raise NotAllowed(_("You cannot invite people as %(role)s.") % {"role": role.label})
    token = secret_tokens.generate_token()
    with transaction.atomic():
        invitation = Invitation.objects.create(
            project=project,
            role=role,
            token_digest=secret_tokens.hash_token(token),
            note=note.strip()[:100],
            made_by=by,
            made_at=now,
            expires_at=now + dt.timedelta(days=days),
            uses_allowed=uses_allowed,
        )
        _log_event("invitation.made", invitation, by, now, role=role.value, uses_allowed=uses_allowed, days=days)
    return invitation, token


def open_invitations(*, now: dt.datetime) -> QuerySet[Invitation]:
    """Those that let somebody in: whoever made one belongs to the project still, and still gives its role. A link kept
    back would lead those in again who were taken out, or give back what was taken from them."""
    makers = Membership.objects.active().filter(project=OuterRef("project"), user=OuterRef("made_by"))
    may = (
        Q(Exists(makers.filter(role=maker)), role__in=sorted(given)) for maker, given in roles.GRANTABLE_ROLES.items()
    )
    return Invitation.objects.open(now).filter(reduce(operator.or_, may))


def find_invitation(*, token: str, now: dt.datetime) -> Invitation | None:
    """The invitation, if it still lets somebody in. Looking does not use it up."""
    links = open_invitations(now=now).select_related("project", "made_by")
    return links.filter(token_digest=secret_tokens.hash_token(token)).first()


def accept_invitation(*, token: str, user: User, now: dt.datetime) -> Membership:
    """Make `user` a member. Who is one already stays what they are, and the invitation keeps its use for another. Who
    was one and went comes back by a newer invitation alone: otherwise whoever was removed follows the old link in."""
    invitation = find_invitation(token=token, now=now)
    if invitation is None:
        raise InvitationInvalid
    with transaction.atomic():
        present = members.lock_memberships(project=invitation.project).filter(user=user).first()
        left_at = present.left_at if present else None
        if present is not None and left_at is None:
            return present
        if left_at is not None and invitation.made_at < left_at:
            raise InvitationInvalid
        count_use(invitation=invitation, now=now)
        membership = members.add_member(project=invitation.project, user=user, role=Role(invitation.role), now=now)
        _log_event("invitation.accepted", invitation, user, now, role=invitation.role)
    return membership


def count_use(*, invitation: Invitation, now: dt.datetime) -> None:
    """Count one who came in by it. The condition is checked by the statement that counts: an invitation for one lets
    one in."""
    if not open_invitations(now=now).filter(pk=invitation.pk).update(uses=F("uses") + 1):
        raise InvitationInvalid


def accept_with_new_account(
    *, token: str, username: str, password: str, now: dt.datetime, email: str = "", name: str = ""
) -> Membership:
    """Make an account and bring it in: both or neither, so that an invitation that is over leaves no account behind."""
    with transaction.atomic():
        user = users.create_user(username=username, password=password, email=email, name=name, now=now)
        return accept_invitation(token=token, user=user, now=now)


def revoke_invitation(*, invitation: Invitation, by: User, now: dt.datetime) -> None:
    """The link lets nobody in any more. Who came by it stays."""
    if not roles.may_grant(members.get_membership(project=invitation.project, user=by), invitation.role):
        raise NotAllowed(_("You cannot revoke this invitation."))
    with transaction.atomic():
        if Invitation.objects.filter(pk=invitation.pk, revoked_at=None).update(revoked_at=now):
            _log_event("invitation.revoked", invitation, by, now)


def _log_event(what: str, invitation: Invitation, by: User, now: dt.datetime, **detail: str | int) -> None:
    subject = f"invitation:{invitation.pk}"
    audit_log.log_event(what=what, by=by, now=now, project=invitation.project_id, subject=subject, detail=detail)
