"""May a new PRM replace the current one? Not if it is significantly worse, and not while a blocking alarm is raised.

The comparison uses the length-matched risk-set AUC of both PRMs on the same labeled pairs: the gate fails if the
interval of the difference is below 0. Without enough labels to compare them the current PRM stays. Only the first PRM
of a project may start without an evaluation, since it replaces a random order.
"""

import enum
from collections.abc import Collection
from dataclasses import dataclass

from stats.estimates import Estimate, Interval, Reason


class GateReason(enum.StrEnum):
    """The values are stored with generations; `dashboard` maps them to texts."""

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
    reason: GateReason
    alarms: tuple[str, ...] = ()


def decide_gate(
    *,
    candidate: Estimate,
    difference: Interval | Reason | None,
    alarms: Collection[str],
    advisory: Collection[str] = (),
    is_current: bool = False,
) -> GateDecision:
    """Decide by the alarms that are not advisory, and by the difference to the current PRM if there is one."""
    if is_current:
        return GateDecision(True, GateReason.SAME, tuple(alarms))
    if not set(alarms) <= set(advisory):
        return GateDecision(False, GateReason.ALARM, tuple(alarms))
    return GateDecision(*_compare(candidate, difference), tuple(alarms))


def _compare(candidate: Estimate, difference: Interval | Reason | None) -> tuple[bool, GateReason]:
    if difference is None:
        is_evaluated = candidate.interval is not None or candidate.interval_reason is Reason.NO_SPREAD
        return True, GateReason.FIRST if is_evaluated else GateReason.FIRST_UNJUDGED
    if isinstance(difference, Reason):
        is_equal = difference is Reason.NO_SPREAD
        return is_equal, GateReason.NOT_WORSE if is_equal else GateReason.UNJUDGED
    if difference.high < 0:
        return False, GateReason.WORSE
    return True, GateReason.BETTER if difference.low > 0 else GateReason.NOT_WORSE
