"""Project members and their roles, and projects created with their owner.

The only module that writes Membership rows; it also adds and removes raters."""

import datetime as dt
from collections.abc import Collection
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

import rawsql
from accounts import factors, tokens, users
from accounts.models import User
from events import audit_log, revocations
from events.models import Event
from labeling import queue, raters
from labeling.models import Project, Rater
from labeling.projects import lifecycle
from people import roles
from people.models import Membership, MembershipQuerySet, Role
from people.roles import NotAllowed
from rawsql.model_rows import ModelColumns

_MEMBERSHIP, _PROJECT = ModelColumns(Membership, "member"), ModelColumns(Project, "project")
# Every page of a project loads both: the ORM took a quarter of the time of a small page.
_LOAD_MEMBERSHIP = f"""
SELECT {_MEMBERSHIP.sql}, {_PROJECT.sql}
FROM people_membership member JOIN labeling_project project ON project.id = member.project_id
WHERE member.user_id = %(user)s AND member.left_at IS NULL AND project.slug = %(slug)s"""  # noqa: S608  made of constants


class LastOwner(Exception):
    """The project would have no owner."""

    def __init__(self) -> None:
        super().__init__(_("A project needs at least one owner. Make another member an owner first."))


class NotAMember(NotAllowed):
    """The acting user or the other person is not a member. They never were one, or have left in the meantime."""

    def __init__(self) -> None:
        super().__init__(_("Nothing was changed: you or the other person are no longer in the project."))


def load_membership(*, user: User, slug: str) -> Membership | None:
    """Return the user's current membership in a project, with the project and the user."""
    rows = rawsql.fetch_rows(_LOAD_MEMBERSHIP, {"user": user.pk, "slug": slug})
    if not rows:
        return None
    membership = _MEMBERSHIP.make_instance(rows[0][: len(_MEMBERSHIP)])
    membership.project = _PROJECT.make_instance(rows[0][len(_MEMBERSHIP) :])
    membership.user = user
    return membership


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


def create_owned_project(*, name: str, slug: str, by: User, now: dt.datetime, **settings: Any) -> Project:
    """Create a project and make its creator the owner."""
    with transaction.atomic():
        project = lifecycle.create_project(name=name, slug=slug, by=by, now=now, **settings)
        add_member(project=project, user=by, role=Role.OWNER, now=now)
    return project


def clone_owned_project(*, project: Project, name: str, slug: str, by: User, now: dt.datetime) -> Project:
    """Clone a project and make the acting user its owner."""
    with transaction.atomic():
        clone = lifecycle.clone_project(project=project, name=name, slug=slug, by=by, now=now)
        add_member(project=clone, user=by, role=Role.OWNER, now=now)
    return clone


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
        member, actor = _lock_pair(membership, by)
        if not (roles.may_manage(actor, member.role) and roles.may_grant(actor, role)):
            raise NotAllowed(
                _("Your role does not allow you to change this person’s role to %(role)s. Ask an owner.")
                % {"role": role.label}
            )
        _keep_an_owner(member, role)
        before, member.role = member.role, role
        member.save(update_fields=["role"])
        _sync_rater(member, by, now)
        _log_event("member.role_changed", member, by, now, before=before, after=role.value)
        _note_change(member, now)
    return member


def leave_project(*, membership: Membership, now: dt.datetime) -> None:
    """End one's own membership."""
    with transaction.atomic():
        member, actor = _lock_pair(membership, membership.user)
        _end_membership(member, "member.left", actor.user, now)


def remove_member(*, membership: Membership, by: User, now: dt.datetime) -> None:
    """Remove a member. Their ratings are kept; unopened assignments return to the queue."""
    with transaction.atomic():
        member, actor = _lock_pair(membership, by)
        if not roles.may_manage(actor, member.role):
            raise NotAllowed(_("Your role does not allow you to remove this person. Ask an owner."))
        _end_membership(member, "member.removed", by, now)


def list_removed(project: Project, *, at_most: int = 20) -> list[Membership]:
    """Return members whom someone removed, the latest first. Those who left by themselves need an invitation."""
    gone = Membership.objects.filter(project=project, left_at__isnull=False, user__erased_at=None).select_related(
        "user"
    )
    latest = list(gone.order_by("-left_at", "-pk")[: 2 * at_most])
    subjects = [f"user:{each.user_id}" for each in latest]
    endings = Event.objects.filter(project=project.pk, what__in=["member.left", "member.removed"], subject__in=subjects)
    last = dict(endings.order_by("pk").values_list("subject", "what"))
    return [each for each in latest if last.get(f"user:{each.user_id}") == "member.removed"][:at_most]


def restore_member(*, membership: Membership, by: User, now: dt.datetime) -> None:
    """Undo a removal: the member has the earlier role again, with the earlier work and pseudonym."""
    with transaction.atomic():
        memberships = {each.user_id: each for each in lock_memberships(project=membership.project)}
        actor, member = memberships.get(by.pk), memberships.get(membership.user_id)
        if actor is None or member is None:
            raise NotAMember
        if member.left_at is None:
            return
        if not roles.may_grant(actor, member.role) or member.user_id not in {
            each.user_id for each in list_removed(member.project)
        }:
            raise NotAllowed(_("You can’t restore this person. Send them an invitation."))
        member.left_at = None
        member.save(update_fields=["left_at"])
        if Rater.objects.filter(project=member.project, user=member.user).exists():
            raters.ensure_member(project=member.project, user=member.user, now=now)
        _log_event("member.restored", member, by, now)


def find_resettable(*, actor: Membership, among: Collection[User]) -> set[int]:
    """Return the IDs of the users for whom `actor` may create password links.

    A password link gives access to the whole account. The actor must therefore manage the user in *every* project they
    belong to; otherwise the lead of a small project could take over the account of another project's owner."""
    own = {each.project_id: each for each in Membership.objects.of(actor.user)}
    not_managed = {
        each.user_id
        for each in Membership.objects.active().filter(user__in=among)
        if each.project_id not in own or not roles.may_manage(own[each.project_id], each.role)
    }
    ordinary = {
        user.pk for user in among if user.is_active and not (user.is_staff or user.is_superuser or user.is_worker)
    }
    return ordinary - not_managed


def create_reset_link(*, membership: Membership, by: User, now: dt.datetime) -> str:
    """Return the token of a link with which this member can set a new password."""
    actor = get_membership(project=membership.project, user=by)
    if membership.left_at is not None or membership.user_id not in find_resettable(
        actor=actor, among=[membership.user]
    ):
        raise NotAllowed(
            _("You can’t create this link: you don’t manage this person in all their projects. Ask the operator.")
        )
    with transaction.atomic():
        token = tokens.create_password_link(user=membership.user, by=by, now=now)
        _log_event("member.reset_link_made", membership, by, now)
    return token


def reset_factors(*, membership: Membership, by: User, now: dt.datetime) -> None:
    """Remove the second factors of a member who lost them. They are notified, and then log in with only the
    password."""
    actor = get_membership(project=membership.project, user=by)
    is_resettable = membership.user_id in find_resettable(actor=actor, among=[membership.user])
    if actor.role != Role.OWNER or membership.user_id == by.pk or membership.left_at is not None or not is_resettable:
        raise NotAllowed(
            _("Only an owner of all this person’s projects can reset their two-step login. Ask the operator.")
        )
    with transaction.atomic():
        factors.reset_factors(user=membership.user, by=by, now=now)
        _log_event("member.factors_reset", membership, by, now)


def end_memberships(*, user: User, by: User | None, now: dt.datetime) -> None:
    """End all memberships of a user who is erased. Their ratings are kept under pseudonyms."""
    for membership in Membership.objects.of(user):
        member, _user = _lock_pair(membership, user)
        _end_membership(member, "member.left", by, now)


def repeat_change(*, membership: Membership, role: Role | None, now: dt.datetime) -> None:
    """End a membership of a restored backup, or set its role, as was done since. The last owner keeps that role."""
    with transaction.atomic():
        try:
            _keep_an_owner(membership, role)
        except LastOwner:
            return
        if role is None:
            _end_membership(membership, "member.removed", None, now)
        elif role != membership.role:
            before, membership.role = membership.role, role
            membership.save(update_fields=["role"])
            _sync_rater(membership, None, now)
            _log_event("member.role_changed", membership, None, now, before=before, after=role.value)


def set_role_of_groups(*, project: Project, user: User, role: Role | None, now: dt.datetime) -> None:
    """Give a user the role of their single sign-on groups, or end the membership. The last owner keeps that role."""
    with transaction.atomic():
        membership = lock_memberships(project=project).filter(user=user).first()
        is_member = membership is not None and membership.left_at is None
        if membership is not None and is_member:
            repeat_change(membership=membership, role=role, now=now)
            if membership.left_at is None:
                _note_change(membership, now)
        elif role is not None:
            member = add_member(project=project, user=user, role=role, now=now)
            _log_event("member.added_by_groups", member, None, now, role=role.value)


def _note_change(member: Membership, now: dt.datetime) -> None:
    """Record the new role, or that there is none, for a restore of an older backup."""
    revocations.note_after_commit(
        what="membership",
        account=users.compute_digest(member.user),
        now=now,
        project=member.project_id,
        role="" if member.left_at else str(member.role),
    )


def _lock_pair(membership: Membership, by: User) -> tuple[Membership, Membership]:
    """Return the locked memberships of the member and the acting user, as they are now."""
    by_user = {each.user_id: each for each in lock_memberships(project=membership.project).active()}
    try:
        return by_user[membership.user_id], by_user[by.pk]
    except KeyError:
        raise NotAMember from None


def _end_membership(member: Membership, what: str, by: User | None, now: dt.datetime) -> None:
    _keep_an_owner(member, None)
    member.left_at = now
    member.save(update_fields=["left_at"])
    _sync_rater(member, by, now)
    _log_event(what, member, by, now, role=member.role)
    _note_change(member, now)


def _keep_an_owner(member: Membership, role: Role | None) -> None:
    owners = Membership.objects.active().filter(project=member.project, role=Role.OWNER)
    if member.role == Role.OWNER and role is not Role.OWNER and not owners.exclude(pk=member.pk).exists():
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
