"""What each role may do: a table of roles and actions, and the checks that use it."""

from enum import StrEnum

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from labeling.models import Project
from people.models import Membership, Role


class Action(StrEnum):
    """An action that requires a role in the project."""

    RATE = "rate"  # get traces and rate them
    READ = "read"  # see all traces, ratings, statistics and jobs
    ADJUDICATE = "adjudicate"  # decide contested traces
    MAKE_GOLD = "make_gold"  # set known answers
    BRING_IN = "bring_in"  # import traces and upload scores
    TAKE_OUT = "take_out"  # build and download snapshots
    TRAIN = "train"  # register, train, use and select PRMs
    LICENSE = "license"  # license machines to label or settle traces
    READ_SETTINGS = "read_settings"  # see settings and guidelines
    READ_QUALITY = "read_quality"  # see figures and submissions of annotators
    AUDIT = "audit"  # see who did what, and when
    GUIDE = "guide"  # publish guidelines and change what annotators see
    INVITE = "invite"  # invite and remove people, change roles
    WRITE = "write"  # message annotators and read their replies
    PAUSE = "pause"  # pause and resume the project or a rater
    NOTIFY = "notify"  # choose own notices by email, and manage webhooks
    CLOSE = "close"  # close and archive the project


_A = Action
_READS = frozenset({_A.READ, _A.READ_SETTINGS, _A.READ_QUALITY})
ROLE_ACTIONS: dict[Role, frozenset[Action]] = {
    Role.OWNER: frozenset(Action),
    Role.LEAD: frozenset(Action) - {_A.CLOSE},
    Role.REVIEWER: frozenset({_A.RATE, _A.ADJUDICATE, _A.MAKE_GOLD, _A.WRITE}) | _READS,
    Role.ENGINEER: frozenset({_A.BRING_IN, _A.TAKE_OUT, _A.TRAIN}) | _READS,
    Role.VIEWER: _READS,
    Role.ANNOTATOR: frozenset({_A.RATE}),
}

# The roles that a role may grant, and those whose members it may remove or give another role. Leads can appoint leads
# but not remove them: otherwise a new lead could remove the one who appointed them.
_BELOW_LEADS = frozenset({Role.REVIEWER, Role.ENGINEER, Role.VIEWER, Role.ANNOTATOR})
GRANTABLE_ROLES: dict[Role, frozenset[Role]] = {Role.OWNER: frozenset(Role), Role.LEAD: _BELOW_LEADS | {Role.LEAD}}
MANAGEABLE_ROLES: dict[Role, frozenset[Role]] = {Role.OWNER: frozenset(Role), Role.LEAD: _BELOW_LEADS}

# Members of these roles become raters when they join; members of other roles opt in with `members.begin_rating`.
RATING_ROLES = frozenset({Role.ANNOTATOR})


class NotAllowed(PermissionDenied):
    """The user's role does not permit the action. Django responds with 403."""


def roles_allowed_to(action: Action) -> frozenset[Role]:
    return frozenset(role for role, actions in ROLE_ACTIONS.items() if action in actions)


def user_may(user: User, action: Action, project: Project) -> bool:
    membership = Membership.objects.of(user).filter(project=project).first()
    return membership is not None and membership_may(membership, action)


def membership_may(membership: Membership, action: Action) -> bool:
    """Like `user_may`, for a membership that is already loaded."""
    return membership.left_at is None and action in ROLE_ACTIONS[Role(membership.role)]


def may_read_both_halves(membership: Membership) -> bool:
    """Whether this member judges no labels, or decides what annotators see. Others read one half of each pair."""
    return membership_may(membership, Action.GUIDE) or not membership_may(membership, Action.ADJUDICATE)


def require_action(membership: Membership, action: Action) -> None:
    if not membership_may(membership, action):
        raise NotAllowed(
            _("Your role in “%(project)s” is %(role)s. This requires one of these roles: %(allowed)s.")
            % {
                "role": membership.get_role_display(),
                "project": membership.project.name,
                "allowed": ", ".join(str(role.label) for role in Role if role in roles_allowed_to(action)),
            }
        )


def visible_projects(user: User, action: Action | None = None) -> QuerySet[Project]:
    """Return the user's projects; with an action, those in which they may perform it."""
    roles = frozenset(Role) if action is None else roles_allowed_to(action)
    return Project.objects.filter(
        memberships__user=user, memberships__left_at=None, memberships__role__in=sorted(roles)
    )


def may_create_projects(user: User) -> bool:
    """Whether the user is the operator, or already owns or leads a project."""
    return user.is_staff or Membership.objects.of(user).filter(role__in=[Role.OWNER, Role.LEAD]).exists()


def may_grant(membership: Membership, role: str) -> bool:
    """Whether this member may give `role` to others."""
    return membership.left_at is None and role in GRANTABLE_ROLES.get(Role(membership.role), frozenset())


def may_manage(membership: Membership, role: str) -> bool:
    """Whether this member may remove members who have `role`, or give them another role."""
    return membership.left_at is None and role in MANAGEABLE_ROLES.get(Role(membership.role), frozenset())
