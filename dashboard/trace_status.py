"""Why a trace is where it is, in words. What settling decided stands on the trace's settlement; before the first
reading its place in the queue says it."""

from collections.abc import Sequence

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from labeling.models import QueueEntry, Trace
from labeling.models.consensus import Settlement, SettlementState
from labeling.models.queue import SamplingSource
from labeling.quality import resolution_reasons as quality_reasons

_GOLD_ARMS = (
    SamplingSource.GOLD,
    SamplingSource.TRAINING,
    SamplingSource.SCREENING,
)  # no number of readings uses them up


def explain_trace_status(trace: Trace, settlement: Settlement | None, entries: Sequence[QueueEntry]) -> str:
    if trace.withdrawn_at is not None:
        return _("Withdrawn: %(reason)s") % {"reason": trace.withdrawn_reason}
    if settlement is not None:
        return _explain_settlement(settlement) + _count_open_slots(entries)
    open_ones = [entry for entry in entries if entry.slots_left > 0]
    if not entries:
        return _("Not in the queue: nobody is given it. Ratings from its file, if any, are too few to settle it.")
    if not open_ones:
        return _("Given out; nothing submitted yet.")
    entry = open_ones[0]
    return _explain_arm(entry.lane.arm, entry.slots_left)


def _explain_settlement(settlement: Settlement) -> str:
    if settlement.state == SettlementState.CONTESTED:
        return f"{quality_reasons.describe_resolution_reason(settlement.reason)} {_('A person decides.')}"
    return quality_reasons.describe_resolution_reason(settlement.reason)


def _count_open_slots(entries: Sequence[QueueEntry]) -> str:
    left = sum(entry.slots_left for entry in entries if entry.lane.arm not in _GOLD_ARMS)
    return "" if not left else " " + ngettext("%(n)d reading is free.", "%(n)d readings are free.", left) % {"n": left}


def _explain_arm(arm: str, n: int) -> str:
    words = {
        SamplingSource.TRAINING: _("In the training set: newcomers learn by it."),
        SamplingSource.SCREENING: _("In the screening set: newcomers read it."),
        SamplingSource.GOLD: ngettext("Hidden gold: shown %(n)d time more.", "Hidden gold: shown %(n)d times more.", n),
        SamplingSource.TOP_UP: ngettext(
            "Came back to the queue; waits for %(n)d reading.", "Came back to the queue; waits for %(n)d readings.", n
        ),
        SamplingSource.OPINION: _("A further opinion was asked for."),
        SamplingSource.RESERVE: ngettext(
            "In the reserve; waits for %(n)d reading.", "In the reserve; waits for %(n)d readings.", n
        ),
        SamplingSource.UNIFORM: ngettext(
            "Waits for %(n)d reading, in an order drawn by lot.",
            "Waits for %(n)d readings, in an order drawn by lot.",
            n,
        ),
        SamplingSource.POLICY: ngettext(
            "Chosen by the policy; waits for %(n)d reading.", "Chosen by the policy; waits for %(n)d readings.", n
        ),
    }
    otherwise = ngettext("Waits for %(n)d reading.", "Waits for %(n)d readings.", n)
    return str(words.get(SamplingSource(arm), otherwise)) % {"n": n}
