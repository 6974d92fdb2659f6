"""Reviewers read one half of a pair: the other would tell them what the intervention changed. Leads read both."""

from django.core.exceptions import PermissionDenied
from django.utils.translation import gettext as _

from labeling import queue
from labeling.models import Trace
from people import roles
from people.models import Membership
from people.roles import Action


def may_read_both_halves(actor: Membership) -> bool:
    """Whether this member judges no labels, or decides what annotators see."""
    return roles.membership_may(actor, Action.GUIDE) or not roles.membership_may(actor, Action.ADJUDICATE)


def reserve_half_or_403(actor: Membership, trace: Trace) -> None:
    """Record that a reviewer reads this trace. Raises PermissionDenied if the other half of its pair is theirs."""
    if not may_read_both_halves(actor) and not queue.reserve_half(trace=trace, user=actor.user):
        raise PermissionDenied(
            _("You have read the other half of this pair, so this trace is for another reviewer or a lead.")
        )
