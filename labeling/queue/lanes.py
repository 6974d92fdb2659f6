"""Lanes and the keys of their entries. Makes lanes when they are first needed.

A lane is one arm of one generation. Readers go down it by (key, trace): entries above a rater's position are already
assigned to that rater, or not eligible for them. The newest assignment that a lane gave a rater is the position; a
newer `QueueReader` row says that the lane came up empty from its key down. `claim.sql` reads lanes in this way.
"""

import datetime as dt

from labeling.models import Lane
from labeling.models.queue import SamplingSource

# How long a trace stays with a rater who has not opened it: fetched ahead, it keeps others from having it.
HOLD_DURATION = dt.timedelta(minutes=5)

BOTTOM = -(2**63)
TOP = 2**63 - 1

# Slots come back below every reader, in the order of their arrival. One that was stamped earlier may become visible
# later: readers leave that much room, and look from the top before anybody is told that nothing is left.
ARRIVAL_ROOM = dt.timedelta(seconds=10)
# A mark is renewed when it lags this much: rarely, since every one written leaves a dead row behind.
CURSOR_RENEWAL = dt.timedelta(seconds=60)
_MICROSECOND = dt.timedelta(microseconds=1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
ARRIVAL_SOURCES = (SamplingSource.TOP_UP, SamplingSource.OPINION)
WORK_SOURCES = (
    SamplingSource.UNIFORM,
    SamplingSource.POLICY,
    SamplingSource.RESERVE,
)  # from here traces are given out as often as the project asks


def arrival_key(at: dt.datetime) -> int:
    """Minus the microseconds since 1970: the later, the further down."""
    return -((at - _EPOCH) // _MICROSECOND)


def exhausted_key(arm: str, now: dt.datetime) -> int:
    """Where a rater stands in a lane that came up empty."""
    return arrival_key(now - ARRIVAL_ROOM) if arm in ARRIVAL_SOURCES else BOTTOM


def renewal_key(now: dt.datetime) -> int:
    """Return the key above which the mark of an empty lane of arrivals is renewed."""
    return exhausted_key(SamplingSource.TOP_UP, now) + CURSOR_RENEWAL // _MICROSECOND


def ensure_lane(*, project_id: int, arm: str, generation: int = 0) -> Lane:
    """The lane of an arm, made when it is first needed."""
    lane, _ = Lane.objects.get_or_create(project_id=project_id, arm=arm, generation=generation)
    return lane
