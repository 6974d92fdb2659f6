"""Traces whose answers are known: in which lanes they are shown, and that they are no work. Reads only."""

from collections import defaultdict
from collections.abc import Collection

from django.db.models import Exists, OuterRef

from labeling.models import Gold
from labeling.models.assignment import Purpose
from labeling.models.quality import GoldUse
from labeling.models.queue import Arm

# Gold is shown a number of times, each exposure in its own lane: it never becomes work.
ARMS = {Purpose.TRAINING: Arm.TRAINING, Purpose.SCREENING: Arm.SCREENING, Purpose.GOLD: Arm.GOLD}
_SHOWN_IN = {GoldUse.TRAINING: Arm.TRAINING, GoldUse.SCREENING: Arm.SCREENING, GoldUse.HIDDEN: Arm.GOLD}

# That something was known of it once is enough: many may know its answer by heart.
WAS_GOLD = Exists(Gold.objects.filter(trace=OuterRef("trace")))


def among(trace_ids: Collection[int]) -> dict[int, set[str]]:
    """Those of these traces that are gold now, with the arms in which they are shown: a canary in none."""
    found: dict[int, set[str]] = defaultdict(set)
    rows = Gold.objects.active().filter(trace_id__in=trace_ids).values_list("trace_id", "use")
    for trace_id, use in rows:
        arm = _SHOWN_IN.get(GoldUse(use))
        found[trace_id] |= {arm} if arm else set()
    return found
