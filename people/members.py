"""Project members and their roles. The only module that writes Membership rows; it also adds and removes raters."""

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
    """The project would have no owner. Another member must become owner first."""


class NotAMember(NotAllowed):
    """The acting user or the other person is not a member: never was, or has left in the meantime."""

    def __init__(self) -> None:
        super().__init__(_("Nothing was changed: you or the other person are no longer in the project."))


def get_membership(*, project: Project, user: User) -> Membership:
    membership = Membership.objects.of(user).filter(project=project).first()
    if membership is None:
        raise NotAMember
    return membership


def list_leads(project: Project) -> MembershipQuerySet:
    """Return the leads and owners, owners last."""
    return (
        Membership.objects.active()
        .filter(project=project, role__in=[Role.LEAD, Role.OWNER])
        .select_related("user")
        .order_by("role", "user__name")
    )


def lock_memberships(*, project: Project) -> MembershipQuerySet:
    """Return all memberships of a project, locked against changes until the transaction ends."""
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    return Membership.objects.filter(project=project).select_related("project", "user")


def add_member(*, project: Project, user: User, role: Role, now: dt.datetime) -> Membership:
    """Add or re-add a member. The caller has checked that this is permitted."""
    membership, _new = Membership.objects.update_or_create(
        project=project, user=user, defaults={"role": role, "joined_at": now, "left_at": None}
    )
    if role in roles.RATING_ROLES:
        raters.ensure_member(project=project, user=user, now=now)
    return membership


def begin_rating(*, project: Project, by: User, now: dt.datetime) -> Rater:
    """Make a member a rater. Annotators are raters from the start; members of other roles that may rate opt in here,
    so that statistics do not count people who never rate."""
    with transaction.atomic():
        membership = get_membership(project=project, user=by)
        roles.require_action(membership, roles.Action.RATE)
        rater = raters.ensure_member(project=project, user=by, now=now)
        _log_event("member.began_rating", membership, by, now)
    return rater


def change_role(*, membership: Membership, role: Role, by: User, now: dt.datetime) -> Membership:
    """Change a member's role. The acting user must be able to grant both the old and the new role."""
    with transaction.atomic():
        members = lock_memberships(project=membership.project).active()
        member, actor = _lock_pair(members, membership, by)
        if not (roles.may_grant(actor, member.role) and roles.may_grant(actor, role)):
            raise NotAllowed(_("You can't change this person’s role to %(role)s.") % {"role": role.label})
        _keep_an_owner(members, member, role)
        before, member.role = member.role, role
        member.save(update_fields=["role"])
        _sync_rater(member, by, now)
        _log_event("member.role_changed", member, by, now, before=before, after=role.value)
    return member


def leave_project(*, membership: Membership, now: dt.datetime) -> None:
    """End one's own membership."""
    with transaction.atomic():
        members = lock_memberships(project=membership.project).active()
        member, actor = _lock_pair(members, membership, membership.user)
        _end_membership(members, member, "member.left", actor.user, now)


def remove_member(*, membership: Membership, by: User, now: dt.datetime) -> None:
    """Remove a member. Their ratings are kept; unopened assignments return to the queue."""
    with transaction.atomic():
        members = lock_memberships(project=membership.project).active()
        member, actor = _lock_pair(members, membership, by)
        if not roles.may_grant(actor, member.role):
            raise NotAllowed(_("You can't remove this person."))
        _end_membership(members, member, "member.removed", by, now)


def find_resettable(*, actor: Membership, among: Collection[User]) -> set[int]:
    """Return the IDs of the users for whom `actor` may create password links.

    A password link gives access to the whole account. The actor must therefore manage the user in *every* project they
    belong to; otherwise the lead of a small project could take over the account of another project's owner."""
    own = {each.project_id: each for each in Membership.objects.of(actor.user)}
    not_managed = {
        each.user_id
        for each in Membership.objects.active().filter(user__in=among)
        if each.project_id not in own or not roles.may_grant(own[each.project_id], each.role)
    }
    ordinary = {user.pk for user in among if user.is_active and not (user.is_staff or user.is_superuser)}
    return ordinary - not_managed


def create_reset_link(*, membership: Membership, by: User, now: dt.datetime) -> str:
    """Return the token of a link with which this member can set a new password."""
    actor = get_membership(project=membership.project, user=by)
    if membership.left_at is not None or membership.user_id not in find_resettable(
        actor=actor, among=[membership.user]
    ):
        raise NotAllowed(
            _("You can't create this link: you don't manage this person in all their projects. Ask the operator.")
        )
    with transaction.atomic():
        token = login_links.create_password_link(user=membership.user, by=by, now=now)
        _log_event("member.reset_link_made", membership, by, now)
    return token


def erase_person(*, user: User, by: User | None, now: dt.datetime) -> None:
    """Erase a user's personal data and end all their memberships. Their ratings are kept under pseudonyms."""
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
    """Return the current memberships of the member and the acting user, which were read before the lock."""
    by_user = {each.user_id: each for each in members}
    try:
        return by_user[membership.user_id], by_user[by.pk]
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
    """Create the rater of an annotator; remove the rater of a member who may no longer rate.

    Removal returns prefetched traces to the queue."""
    if member.left_at is None and member.role in roles.RATING_ROLES:
        raters.ensure_member(project=member.project, user=member.user, now=now)
    elif not roles.membership_may(member, roles.Action.RATE):
        for rater in Rater.objects.active().filter(project=member.project, user=member.user):
            raters.remove_rater(rater=rater, now=now)
            queue.release_held(rater_id=rater.pk, now=now, reason="no longer a rater here", by=by)


def _log_event(what: str, member: Membership, by: User | None, now: dt.datetime, **detail: str) -> None:
    subject = f"user:{member.user_id}"
    audit_log.log_event(what=what, by=by, now=now, project=member.project_id, subject=subject, detail=detail)
