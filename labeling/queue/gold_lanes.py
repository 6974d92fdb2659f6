"""Traces whose answers are known: in which lanes they are shown, and that they are no work. Reads only."""

from collections import defaultdict
from collections.abc import Collection

from django.db.models import Exists, OuterRef

from labeling.models import Gold
from labeling.models.assignment import AssignmentPurpose
from labeling.models.gold import GoldUse
from labeling.models.queue import SamplingSource

# Gold is shown a number of times, each exposure in its own lane: it never becomes work.
SOURCE_OF_PURPOSE = {
    AssignmentPurpose.TRAINING: SamplingSource.TRAINING,
    AssignmentPurpose.SCREENING: SamplingSource.SCREENING,
    AssignmentPurpose.GOLD: SamplingSource.GOLD,
}
_SOURCE_OF_USE = {
    GoldUse.TRAINING: SamplingSource.TRAINING,
    GoldUse.SCREENING: SamplingSource.SCREENING,
    GoldUse.HIDDEN: SamplingSource.GOLD,
}

# That something was known of it once is enough: many may know its answer by heart.
WAS_GOLD = Exists(Gold.objects.filter(trace=OuterRef("trace")))


def find_gold_sources(trace_ids: Collection[int]) -> dict[int, set[str]]:
    """Those of these traces that are gold now, with the arms in which they are shown: a canary in none."""
    found: dict[int, set[str]] = defaultdict(set)
    rows = Gold.objects.active().filter(trace_id__in=trace_ids).values_list("trace_id", "use")
    for trace_id, use in rows:
        arm = _SOURCE_OF_USE.get(GoldUse(use))
        found[trace_id] |= {arm} if arm else set()
    return found
