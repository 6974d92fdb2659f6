"""Who belongs to a project and as what. Alone writes Membership rows, and makes and removes the member's rater."""

import datetime as dt
from collections.abc import Collection

from django.db import transaction
from django.utils.translation import gettext as _

from accounts import login_links, users
from accounts.models import User
from events import audit_log
from labeling import queue, raters
from labeling.models import Project, Rater
from people import member_messages, roles
from people.models import Membership, MembershipQuerySet, Role, WorkerId
from people.roles import NotAllowed


class LastOwner(Exception):
    """A project keeps at least one owner: make somebody else owner first."""


class NotAMember(NotAllowed):
    """One of the two does not belong to the project: never did, or went while somebody looked at the page."""

    def __init__(self) -> None:
        super().__init__(_("You, or this person, no longer belong to the project. Nothing was changed."))


def get_membership(*, project: Project, user: User) -> Membership:
    membership = Membership.objects.of(user).filter(project=project).first()
    if membership is None:
        raise NotAMember
    return membership


def list_leads(project: Project) -> MembershipQuerySet:
    """Whom somebody in the project can ask, the owners last."""
    return (
        Membership.objects.active()
        .filter(project=project, role__in=[Role.LEAD, Role.OWNER])
        .select_related("user")
        .order_by("role", "user__name")
    )


def lock_memberships(*, project: Project) -> MembershipQuerySet:
    """All memberships of a project, nobody else changing any of them until the transaction ends."""
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    return Membership.objects.filter(project=project).select_related("project", "user")


def add_member(*, project: Project, user: User, role: Role, now: dt.datetime) -> Membership:
    """A member from now on, again or for the first time. The caller has checked who let them in."""
    membership, _new = Membership.objects.update_or_create(
        project=project, user=user, defaults={"role": role, "joined_at": now, "left_at": None}
    )
    if role in roles.RATING_ROLES:
        raters.ensure_member(project=project, user=user, now=now)
    return membership


def begin_rating(*, project: Project, by: User, now: dt.datetime) -> Rater:
    """Become a rater of one's own project. Annotators are raters from the start; whoever else may rate has to ask,
    so that statistics do not count people who never rate."""
    with transaction.atomic():
        membership = get_membership(project=project, user=by)
        roles.require_action(membership, roles.Action.RATE)
        rater = raters.ensure_member(project=project, user=by, now=now)
        _log_event("member.began_rating", membership, by, now)
    return rater


def change_role(*, membership: Membership, role: Role, by: User, now: dt.datetime) -> Membership:
    """Give a member another role. Nobody gives or takes a role that is above what they may give."""
    with transaction.atomic():
        members = lock_memberships(project=membership.project).active()
        member, actor = _lock_pair(members, membership, by)
        if not (roles.may_grant(actor, member.role) and roles.may_grant(actor, role)):
            raise NotAllowed(_("You cannot change this person’s role to %(role)s.") % {"role": role.label})
        _keep_an_owner(members, member, role)
        before, member.role = member.role, role
        member.save(update_fields=["role"])
        _sync_rater(member, by, now)
        _log_event("member.role_changed", member, by, now, before=before, after=role.value)
    return member


def leave_project(*, membership: Membership, now: dt.datetime) -> None:
    """Go of one's own will."""
    with transaction.atomic():
        members = lock_memberships(project=membership.project).active()
        member, actor = _lock_pair(members, membership, membership.user)
        _end_membership(members, member, "member.left", actor.user, now)


def remove_member(*, membership: Membership, by: User, now: dt.datetime) -> None:
    """Take a member out. What they rated stays; what they hold unopened goes back to the queue."""
    with transaction.atomic():
        members = lock_memberships(project=membership.project).active()
        member, actor = _lock_pair(members, membership, by)
        if not roles.may_grant(actor, member.role):
            raise NotAllowed(_("You cannot remove this person."))
        _end_membership(members, member, "member.removed", by, now)


def find_resettable(*, actor: Membership, among: Collection[User]) -> set[int]:
    """For whom of these `actor` may make a link with which they set a new password, by the user's id.

    Such a link is the whole account. So it takes somebody who manages the person in *every* project they belong to;
    otherwise the lead of a small project could walk into the account of another project's owner."""
    mine = {one.project_id: one for one in Membership.objects.of(actor.user)}
    out_of_reach = {
        theirs.user_id
        for theirs in Membership.objects.active().filter(user__in=among)
        if theirs.project_id not in mine or not roles.may_grant(mine[theirs.project_id], theirs.role)
    }
    ordinary = {user.pk for user in among if user.is_active and not (user.is_staff or user.is_superuser)}
    return ordinary - out_of_reach


def create_reset_link(*, membership: Membership, by: User, now: dt.datetime) -> str:
    """The token of a link with which this member sets a new password."""
    actor = get_membership(project=membership.project, user=by)
    if membership.left_at is not None or membership.user_id not in find_resettable(
        actor=actor, among=[membership.user]
    ):
        raise NotAllowed(
            _("Only somebody who manages this person in all their projects can make this link. Ask the operator.")
        )
    with transaction.atomic():
        token = login_links.create_password_link(user=membership.user, by=by, now=now)
        _log_event("member.reset_link_made", membership, by, now)
    return token


def erase_person(*, user: User, by: User | None, now: dt.datetime) -> None:
    """Take away what names this person, everywhere. They leave every project; their ratings stay under pseudonyms."""
    with transaction.atomic():
        for membership in Membership.objects.of(user):
            members = lock_memberships(project=membership.project).active()
            _end_membership(members, members.get(pk=membership.pk), "member.left", by, now)
        users.erase_user(user=user, now=now)
        WorkerId.objects.filter(user=user).delete()
        member_messages.erase_messages(user=user, now=now)
        audit_log.log_event(what="user.erased", by=by, now=now, subject=f"user:{user.pk}")
        audit_log.erase_origins(by=user)


def _lock_pair(members: MembershipQuerySet, membership: Membership, by: User) -> tuple[Membership, Membership]:
    """The member and the one who acts, as they are now: both were read before the lock was taken."""
    now_there = {one.user_id: one for one in members}
    try:
        return now_there[membership.user_id], now_there[by.pk]
    except KeyError:
        raise NotAMember from None


def _end_membership(
    members: MembershipQuerySet, member: Membership, what: str, by: User | None, now: dt.datetime
) -> None:
    _keep_an_owner(members, member, None)
    member.left_at = now
    member.save(update_fields=["left_at"])
    _sync_rater(member, by, now)
    _log_event(what, member, by, now, role=member.role)


def _keep_an_owner(members: MembershipQuerySet, member: Membership, role: Role | None) -> None:
    others = members.filter(role=Role.OWNER).exclude(pk=member.pk)
    if member.role == Role.OWNER and role is not Role.OWNER and not others.exists():
        raise LastOwner


def _sync_rater(member: Membership, by: User | None, now: dt.datetime) -> None:
    """Whoever may rate has a rater that gets work; whoever may not any more has none that does, and what was fetched
    ahead for them goes back."""
    if member.left_at is None and member.role in roles.RATING_ROLES:
        raters.ensure_member(project=member.project, user=member.user, now=now)
    elif not roles.membership_may(member, roles.Action.RATE):
        for rater in Rater.objects.active().filter(project=member.project, user=member.user):
            raters.remove_rater(rater=rater, now=now)
            queue.release_held(rater_id=rater.pk, now=now, reason="no longer a rater here", by=by)


def _log_event(what: str, member: Membership, by: User | None, now: dt.datetime, **detail: str) -> None:
    subject = f"user:{member.user_id}"
    audit_log.log_event(what=what, by=by, now=now, project=member.project_id, subject=subject, detail=detail)
