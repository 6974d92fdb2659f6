"""May a new PRM take over? Not where it is worse than the current one beyond doubt, and not while an alarm rings
(one that is `said` lets pass: it tells what may not be claimed).

The claim rests on the length-matched risk-set AUC, on the very same labelled pairs for both: the gate fails where the
interval of the difference lies below 0. Without enough labels to say so nobody takes over from anybody; only the first
PRM of a project may begin unjudged, since it takes over from chance, and is told so.
"""

import enum
from collections.abc import Collection
from dataclasses import dataclass

from stats.estimates import Estimate, Interval, Reason


class GateReason(enum.StrEnum):
    BETTER = "better than the current one"
    NOT_WORSE = "not worse than the current one beyond its interval"
    FIRST = "the first one"
    FIRST_UNJUDGED = "the first one; the reserve has too few labels to judge it"
    WORSE = "worse than the current one"
    UNJUDGED = "the reserve has too few labels to compare it with the current one"
    ALARM = "an alarm rings"
    SAME = "the current one, judged again"


@dataclass(frozen=True)
class GateDecision:
    has_passed: bool
    why: GateReason
    alarms: tuple[str, ...] = ()


def decide_gate(
    *,
    candidate: Estimate,
    difference: Interval | Reason | None,
    alarms: Collection[str],
    said: Collection[str] = (),
    is_current: bool = False,
) -> GateDecision:
    """`difference` is None where no PRM is current yet."""
    if is_current:
        return GateDecision(True, GateReason.SAME, tuple(alarms))
    if not set(alarms) <= set(said):
        return GateDecision(False, GateReason.ALARM, tuple(alarms))
    return GateDecision(*_compare(candidate, difference), tuple(alarms))


def _compare(candidate: Estimate, difference: Interval | Reason | None) -> tuple[bool, GateReason]:
    if difference is None:
        is_judged = candidate.interval is not None or candidate.interval_reason is Reason.NO_SPREAD
        return True, GateReason.FIRST if is_judged else GateReason.FIRST_UNJUDGED
    if isinstance(difference, Reason):
        is_equal = difference is Reason.NO_SPREAD
        return is_equal, GateReason.NOT_WORSE if is_equal else GateReason.UNJUDGED
    if difference.high < 0:
        return False, GateReason.WORSE
    return True, GateReason.BETTER if difference.low > 0 else GateReason.NOT_WORSE
