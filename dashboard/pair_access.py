"""Reviewers read one half of a pair: the other would tell them what the intervention changed. Leads read both."""

from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.utils.translation import gettext as _

from labeling import queue
from labeling.models import OptionPart, ProblemImage, Trace
from people import roles
from people.models import Membership


def reserve_half_or_403(actor: Membership, trace: Trace) -> None:
    """Record that a reviewer reads this trace. Raises PermissionDenied if the other half of its pair is theirs."""
    if not roles.may_read_both_halves(actor) and not queue.reserve_half(trace=trace, user=actor.user):
        raise PermissionDenied(
            _("You have read the other half of this pair, so this trace is for another reviewer or a lead.")
        )


def may_see_image(actor: Membership, image_id: int) -> bool:
    """Whether a trace shows the image that this member may read. A reviewer reads a page before its images."""
    if roles.may_read_both_halves(actor):
        return True
    asked = Q(problem__in=ProblemImage.objects.filter(image=image_id).values("problem"))
    shown = Q(pk__in=OptionPart.objects.filter(image=image_id).values("option__step__trace"))
    return Trace.objects.filter(asked | shown).filter(queue.may_read_traces(actor.user)).exists()
