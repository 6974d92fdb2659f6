"""What each role may do: one table, and the questions that are asked of it."""

from collections.abc import Collection
from enum import StrEnum

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from labeling.models import Project
from people.models import Membership, Role


class Action(StrEnum):
    """What can be done in a project, as far as it is not everybody's to do."""

    RATE = "rate"  # get traces and rate them
    READ = "read"  # every trace, rating, agreement and job of the project
    ADJUDICATE = "adjudicate"  # decide where raters differ
    MAKE_GOLD = "make_gold"  # say what is known of a trace
    BRING_IN = "bring_in"  # traces and scores, from files or by the API
    TAKE_OUT = "take_out"  # build and fetch snapshots
    TRAIN = "train"  # register, train, score with and choose PRMs
    GUIDE = "guide"  # publish guidelines and change what raters see
    INVITE = "invite"  # people in, roles, and people out
    WRITE = "write"  # to those who rate, and read what they answer
    PAUSE = "pause"  # the project or a rater, and go on again
    CLOSE = "close"  # close and archive the project


_A = Action
ROLE_ACTIONS: dict[Role, frozenset[Action]] = {
    Role.OWNER: frozenset(Action),
    Role.LEAD: frozenset(Action) - {_A.CLOSE},
    Role.REVIEWER: frozenset({_A.RATE, _A.READ, _A.ADJUDICATE, _A.MAKE_GOLD}),
    Role.ENGINEER: frozenset({_A.READ, _A.BRING_IN, _A.TAKE_OUT, _A.TRAIN}),
    Role.ANNOTATOR: frozenset({_A.RATE}),
}

# Which roles somebody may give to and take from others. A lead makes neither leads nor owners, and touches neither.
GRANTABLE_ROLES: dict[Role, frozenset[Role]] = {
    Role.OWNER: frozenset(Role),
    Role.LEAD: frozenset({Role.REVIEWER, Role.ENGINEER, Role.ANNOTATOR}),
}

# Roles that exist to rate: joining as one of them makes the rater. Others become raters when they first ask for work.
RATING_ROLES = frozenset({Role.ANNOTATOR})


class NotAllowed(PermissionDenied):
    """The person sees the project, but their role does not do this. Django answers it with 403."""


def roles_allowed_to(action: Action) -> frozenset[Role]:
    return frozenset(role for role, actions in ROLE_ACTIONS.items() if action in actions)


def user_may(user: User, action: Action, project: Project) -> bool:
    membership = Membership.objects.of(user).filter(project=project).first()
    return membership is not None and membership_may(membership, action)


def membership_may(membership: Membership, action: Action) -> bool:
    """The same question of a membership that has been read already."""
    return membership.left_at is None and action in ROLE_ACTIONS[Role(membership.role)]


def require_action(membership: Membership, action: Action) -> None:
    if not membership_may(membership, action):
        raise NotAllowed(
            _("You are %(role)s in “%(project)s”. This is done by: %(others)s.")
            % {
                "role": membership.get_role_display(),
                "project": membership.project.name,
                "others": format_roles(roles_allowed_to(action)),
            }
        )


def visible_projects(user: User, action: Action | None = None) -> QuerySet[Project]:
    """The projects that this person sees; with an action, those in which they may do it."""
    roles = frozenset(Role) if action is None else roles_allowed_to(action)
    return Project.objects.filter(
        memberships__user=user, memberships__left_at=None, memberships__role__in=sorted(roles)
    )


def may_create_projects(user: User) -> bool:
    """Accounts of the operator, and whoever owns a project already."""
    return user.is_staff or Membership.objects.of(user).filter(role=Role.OWNER).exists()


def may_grant(membership: Membership, role: str) -> bool:
    """Whether this member may give `role` to others and take it from them."""
    return membership_may(membership, Action.INVITE) and role in GRANTABLE_ROLES.get(Role(membership.role), frozenset())


def format_roles(roles: Collection[Role]) -> str:
    """Roles as a person reads them, in the order of the table."""
    return ", ".join(str(role.label) for role in Role if role in roles)
