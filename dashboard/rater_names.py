"""Names of raters on a page: real names for members who manage people, pseudonyms for everyone else."""

from collections import Counter
from collections.abc import Collection

from labeling.models import Rater
from labeling.models.rater import RaterKind
from people import roles
from people.models import Membership
from people.roles import Action

COLUMNS = ("kind", "labeler", "machine", "user__name", "user__username")  # that a name is made of


def can_see_names(actor: Membership) -> bool:
    return roles.membership_may(actor, Action.INVITE)


def get_display_name(rater: Rater, actor: Membership) -> str:
    """Return the name of a rater. Load `rater.user` beforehand to avoid a query per rater."""
    if rater.user_id is not None and rater.user is not None and can_see_names(actor):
        return str(rater.user)
    return get_pseudonym(rater)


def get_distinct_names(raters: Collection[Rater], actor: Membership) -> dict[int, str]:
    """Return names short enough for a column head. Equal names get the end of their pseudonym."""
    names = {rater.pk: _get_short_name(rater, actor) for rater in raters}
    counts = Counter(names.values())
    return {
        rater.pk: f"{names[rater.pk]} {get_pseudonym(rater)[-8:]}" if counts[names[rater.pk]] > 1 else names[rater.pk]
        for rater in raters
    }


def _get_short_name(rater: Rater, actor: Membership) -> str:
    name = get_display_name(rater, actor).partition(" (")[0]
    return name if len(name) <= 20 else f"{name[:19]}…"


def get_pseudonym(rater: Rater) -> str:
    """Return the first 8 characters of a generated pseudonym. Imported labelers keep theirs: many start alike."""
    if rater.kind == RaterKind.IMPORTED:
        return rater.labeler or "?"
    return rater.machine or (rater.labeler or "?")[:8]
