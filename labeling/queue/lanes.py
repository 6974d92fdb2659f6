"""Lanes and the keys of their entries. Creates a lane when it is first needed.

A lane is one sampling source of one generation. Raters read a lane from its highest (key, trace) down: entries above a
rater's position are already assigned to that rater, or not eligible for them. The position is the newest assignment
that the lane gave the rater; a newer `LaneCursor` says that the lane was empty from its key down. `claim.sql` applies
these rules.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection

from django.db.models import Exists, OuterRef

from labeling.models import Gold, Lane
from labeling.models.assignment import AssignmentPurpose
from labeling.models.gold import GoldUse
from labeling.models.queue import SamplingSource

BOTTOM = -(2**63)
TOP = 2**63 - 1

# Returned slots are added below every position, in the order of their return. A transaction with an earlier time may
# commit later, so positions stay this far behind, and a claim searches from the top before it reports that nothing is
# left.
ARRIVAL_MARGIN = dt.timedelta(seconds=10)
# A cursor is renewed when it lags this far: rarely, because each update leaves a dead row behind.
CURSOR_RENEWAL = dt.timedelta(seconds=60)
_MICROSECOND = dt.timedelta(microseconds=1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

ARRIVAL_SOURCES = (SamplingSource.TOP_UP, SamplingSource.OPINION)  # lanes of returned and added slots
# The lanes that give out each trace as often as the project's overlap.
WORK_SOURCES = (SamplingSource.UNIFORM, SamplingSource.POLICY, SamplingSource.RESERVE)

# Gold is served from lanes of its own, so that it never becomes work.
SOURCE_OF_PURPOSE = {
    AssignmentPurpose.TRAINING: SamplingSource.TRAINING,
    AssignmentPurpose.SCREENING: SamplingSource.SCREENING,
    AssignmentPurpose.GOLD: SamplingSource.GOLD,
}
GOLD_SOURCES = tuple(SOURCE_OF_PURPOSE.values())
_SOURCE_OF_USE = {
    GoldUse.TRAINING: SamplingSource.TRAINING,
    GoldUse.SCREENING: SamplingSource.SCREENING,
    GoldUse.HIDDEN: SamplingSource.GOLD,
}

# Retired gold does not become work: raters may remember its answer.
WAS_GOLD = Exists(Gold.objects.filter(trace=OuterRef("trace")))


def find_gold_sources(trace_ids: Collection[int]) -> dict[int, set[str]]:
    """Return the traces that are gold now, each with the lanes that serve it. No lane serves a canary."""
    sources: dict[int, set[str]] = defaultdict(set)
    rows = Gold.objects.active().filter(trace_id__in=trace_ids).values_list("trace_id", "use")
    for trace_id, use in rows:
        source = _SOURCE_OF_USE.get(GoldUse(use))
        sources[trace_id] |= {source} if source else set()
    return sources


def arrival_key(at: dt.datetime) -> int:
    """Return minus the microseconds since 1970, so that later arrivals are further down."""
    return -((at - _EPOCH) // _MICROSECOND)


def exhausted_key(arm: str, now: dt.datetime) -> int:
    """Return the position of a rater in a lane that was empty."""
    return arrival_key(now - ARRIVAL_MARGIN) if arm in ARRIVAL_SOURCES else BOTTOM


def renewal_key(now: dt.datetime) -> int:
    """Return the key above which the cursor of an empty arrival lane is renewed."""
    return exhausted_key(SamplingSource.TOP_UP, now) + CURSOR_RENEWAL // _MICROSECOND


def ensure_lane(*, project_id: int, arm: str, generation: int = 0) -> Lane:
    lane, _ = Lane.objects.get_or_create(project_id=project_id, arm=arm, generation=generation)
    return lane
