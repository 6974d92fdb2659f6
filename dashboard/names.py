"""Who somebody is on a page: the name for those who manage people, the pseudonym for everybody else."""

from labeling.models import Rater
from people import roles
from people.models import Membership
from people.roles import Action


def sees_names(actor: Membership) -> bool:
    return roles.does(actor, Action.INVITE)


def of(rater: Rater, actor: Membership) -> str:
    """`rater.user` has been read where the person may see it."""
    if rater.user_id is not None and rater.user is not None and sees_names(actor):
        return str(rater.user)
    return pseudonym(rater)


def short(rater: Rater, actor: Membership) -> str:
    """What fits above a column."""
    name = of(rater, actor).partition(" (")[0]
    return name if len(name) <= 20 else f"{name[:19]}…"


def pseudonym(rater: Rater) -> str:
    return rater.machine or (rater.labeler or "?")[:8]
