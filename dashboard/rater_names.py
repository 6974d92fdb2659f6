"""Who somebody is on a page: the name for those who manage people, the pseudonym for everybody else."""

from collections import Counter
from collections.abc import Collection

from labeling.models import Rater
from labeling.models.rater import RaterKind
from people import roles
from people.models import Membership
from people.roles import Action


def can_see_names(actor: Membership) -> bool:
    return roles.membership_may(actor, Action.INVITE)


def get_display_name(rater: Rater, actor: Membership) -> str:
    """`rater.user` has been read where the person may see it."""
    if rater.user_id is not None and rater.user is not None and can_see_names(actor):
        return str(rater.user)
    return get_pseudonym(rater)


def get_short_name(rater: Rater, actor: Membership) -> str:
    """What fits above a column."""
    name = get_display_name(rater, actor).partition(" (")[0]
    return name if len(name) <= 20 else f"{name[:19]}…"


def get_distinct_names(raters: Collection[Rater], actor: Membership) -> dict[int, str]:
    """What fits above a column, and is nobody else's there: who is called like somebody else carries the end of what
    datasets call them."""
    names = {rater.pk: get_short_name(rater, actor) for rater in raters}
    often = Counter(names.values())
    return {
        rater.pk: f"{names[rater.pk]} {get_pseudonym(rater)[-8:]}" if often[names[rater.pk]] > 1 else names[rater.pk]
        for rater in raters
    }


def get_pseudonym(rater: Rater) -> str:
    """One that was drawn is known by its beginning. Those that a file gives often begin alike."""
    if rater.kind == RaterKind.IMPORTED:
        return rater.labeler or "?"
    return rater.machine or (rater.labeler or "?")[:8]
