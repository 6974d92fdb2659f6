"""The reason for a trace's state as text. It follows from the settlement or, before the first label, from queue
entries."""

from collections.abc import Sequence
from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from labeling.models import Trace
from labeling.models.consensus import Settlement, SettlementState
from labeling.models.queue import SamplingSource
from labeling.quality import settlements

# The number of labels is not limited for these sources.
_GOLD_SOURCES = (SamplingSource.GOLD, SamplingSource.TRAINING, SamplingSource.SCREENING)


class QueuePlace(NamedTuple):
    """An entry of a trace in the queue: the source of its lane, and the remaining labels."""

    arm: str
    slots_left: int


def explain_trace_status(
    trace: Trace, settlement: Settlement | None, entries: Sequence[QueuePlace], *, n_labels: int = 0
) -> str:
    """`n_labels` is the number of submissions by people. Before a settlement, they are imported ones."""
    if trace.withdrawn_at is not None:
        return _("Withdrawn: %(reason)s") % {"reason": trace.withdrawn_reason}
    if settlement is not None:
        return _explain_settlement(settlement) + _count_remaining(entries)
    return " ".join(part for part in (_explain_imported(n_labels), _explain_queue(entries)) if part)


def _explain_imported(n: int) -> str:
    if not n:
        return ""
    text = ngettext(
        "%(n)d imported label, too few to settle the trace.", "%(n)d imported labels, too few to settle the trace.", n
    )
    return text % {"n": n}


def _explain_queue(entries: Sequence[QueuePlace]) -> str:
    if not entries:
        return _("Not in the queue, so it will not be assigned.")
    entry = next((entry for entry in entries if entry.slots_left > 0), None)
    if entry is None:
        return _("Assigned; nothing submitted yet.")
    return _explain_source(entry.arm, entry.slots_left)


def _explain_settlement(settlement: Settlement) -> str:
    reason = str(settlements.RESOLUTION_REASONS[settlement.reason])
    return f"{reason} {_('A reviewer will decide.')}" if settlement.state == SettlementState.CONTESTED else reason


def _count_remaining(entries: Sequence[QueuePlace]) -> str:
    n = sum(entry.slots_left for entry in entries if entry.arm not in _GOLD_SOURCES)
    return " " + ngettext("%(n)d label remaining.", "%(n)d labels remaining.", n) % {"n": n} if n else ""


def _explain_source(source: str, n: int) -> str:
    waiting = ngettext("waiting for %(n)d label.", "waiting for %(n)d labels.", n) % {"n": n}
    texts = {
        SamplingSource.TRAINING: _("In the training set."),
        SamplingSource.SCREENING: _("In the screening set."),
        SamplingSource.GOLD: ngettext(
            "Hidden gold; will be shown %(n)d more time.", "Hidden gold; will be shown %(n)d more times.", n
        ),
        SamplingSource.CHOSEN: _("Moved to the front of the queue; %(waiting)s"),
        SamplingSource.OPINION: _("Waiting for an additional label."),
        SamplingSource.TOP_UP: _("Returned to the queue; %(waiting)s"),
        SamplingSource.RESERVE: _("In the held-out set; %(waiting)s"),
        SamplingSource.UNIFORM: _("In random order; %(waiting)s"),
        SamplingSource.POLICY: _("Chosen by active selection; %(waiting)s"),
    }
    return texts.get(SamplingSource(source), _("In the queue; %(waiting)s")) % {"n": n, "waiting": waiting}
