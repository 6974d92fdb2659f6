"""Why a trace is where it is, in words. What settling decided stands on the trace's settlement; before the first
reading its place in the queue says it."""

from collections.abc import Sequence

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from labeling.models import QueueEntry, Trace
from labeling.models.consensus import Settlement, SettlementState
from labeling.models.queue import Arm
from labeling.quality import reasons as quality_reasons

_KNOWN = (Arm.GOLD, Arm.TRAINING, Arm.SCREENING)  # no number of readings uses them up


def why(trace: Trace, settlement: Settlement | None, entries: Sequence[QueueEntry]) -> str:
    if trace.withdrawn_at is not None:
        return _("Withdrawn: %(reason)s") % {"reason": trace.withdrawn_reason}
    if settlement is not None:
        return _settled(settlement) + _still_open(entries)
    open_ones = [entry for entry in entries if entry.slots_left > 0]
    if not entries:
        return _("Not in the queue: nobody is given it. Ratings from its file, if any, are too few to settle it.")
    if not open_ones:
        return _("Given out; nothing submitted yet.")
    entry = open_ones[0]
    return _by_arm(entry.lane.arm) % {"n": entry.slots_left}


def _settled(settlement: Settlement) -> str:
    if settlement.state == SettlementState.CONTESTED:
        return f"{quality_reasons.why(settlement.reason)} {_('A person decides.')}"
    return quality_reasons.why(settlement.reason)


def _still_open(entries: Sequence[QueueEntry]) -> str:
    left = sum(entry.slots_left for entry in entries if entry.lane.arm not in _KNOWN)
    return "" if not left else " " + ngettext("%(n)d reading is free.", "%(n)d readings are free.", left) % {"n": left}


def _by_arm(arm: str) -> str:
    words = {
        Arm.TRAINING: _("In the training set: newcomers learn by it."),
        Arm.SCREENING: _("In the screening set: newcomers read it."),
        Arm.GOLD: _("Hidden gold: shown %(n)d times more."),
        Arm.TOP_UP: _("Came back to the queue; waits for %(n)d readings."),
        Arm.OPINION: _("A further opinion was asked for."),
        Arm.RESERVE: _("In the reserve; waits for %(n)d readings."),
        Arm.UNIFORM: _("Waits for %(n)d readings, in an order drawn by lot."),
        Arm.POLICY: _("Chosen by the policy; waits for %(n)d readings."),
    }
    return str(words.get(Arm(arm), _("Waits for %(n)d readings.")))
