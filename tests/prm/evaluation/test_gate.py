"""Who may take over from whom."""

import pytest

from prm.evaluation import gate
from prm.evaluation.gate import GateReason
from stats.estimates import Estimate, Interval, Reason, UnitCounts

COUNTS = UnitCounts(units=50, pairable=50, problems=20)
JUDGED = Estimate(0.6, COUNTS, interval=Interval(0.5, 0.7, 0.95, "x"), bootstrap_reason=Reason.NOT_DRAWN)
UNJUDGED = Estimate(
    None,
    COUNTS,
    reason=Reason.NO_CASES,
    interval_reason=Reason.UNDEFINED,
    bootstrap_reason=Reason.NOT_DRAWN,
)


def between(low: float, high: float) -> Interval:
    return Interval(low, high, 0.95, "x")


@pytest.mark.parametrize(
    ("candidate", "difference", "alarms", "expected"),
    [
        (JUDGED, None, [], (True, GateReason.FIRST)),
        (UNJUDGED, None, [], (True, GateReason.FIRST_UNJUDGED)),
        (JUDGED, None, ["contamination"], (False, GateReason.ALARM)),
        (JUDGED, between(0.01, 0.1), [], (True, GateReason.BETTER)),
        (JUDGED, between(-0.1, 0.02), [], (True, GateReason.NOT_WORSE)),
        (JUDGED, between(-0.1, -0.01), [], (False, GateReason.WORSE)),
        (JUDGED, Reason.FEW_PROBLEMS, [], (False, GateReason.UNJUDGED)),
        (JUDGED, Reason.NO_SPREAD, [], (True, GateReason.NOT_WORSE)),
    ],
)
def test_gate_lets_pass_what_is_not_worse_beyond_doubt(
    candidate: Estimate, difference: Interval | Reason | None, alarms: list[str], expected: tuple[bool, GateReason]
) -> None:
    found = gate.decide_gate(candidate=candidate, difference=difference, alarms=alarms)
    assert (found.has_passed, found.why) == expected


def test_alarm_that_is_only_said_lets_pass_and_stays_with_the_verdict() -> None:
    passed = gate.decide_gate(candidate=JUDGED, difference=None, alarms=["contamination"], said=["contamination"])
    assert (passed.has_passed, passed.why, passed.alarms) == (True, GateReason.FIRST, ("contamination",))
    held = gate.decide_gate(candidate=JUDGED, difference=None, alarms=["contamination", "x"], said=["contamination"])
    assert (held.has_passed, held.why) == (False, GateReason.ALARM)


def test_gate_never_replaces_the_current_prm_by_itself_for_an_alarm() -> None:
    found = gate.decide_gate(candidate=JUDGED, difference=None, alarms=["x"], is_current=True)
    assert (found.has_passed, found.why, found.alarms) == (True, GateReason.SAME, ("x",))
