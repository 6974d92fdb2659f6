"""When a candidate may replace the current PRM."""

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
def test_gate_passes_candidates_that_are_not_significantly_worse(
    candidate: Estimate, difference: Interval | Reason | None, alarms: list[str], expected: tuple[bool, GateReason]
) -> None:
    decision = gate.decide_gate(candidate=candidate, difference=difference, alarms=alarms)
    assert (decision.has_passed, decision.reason) == expected


def test_advisory_alarm_passes_and_stays_with_the_decision() -> None:
    passed = gate.decide_gate(candidate=JUDGED, difference=None, alarms=["contamination"], advisory=["contamination"])
    assert (passed.has_passed, passed.reason, passed.alarms) == (True, GateReason.FIRST, ("contamination",))
    blocked = gate.decide_gate(
        candidate=JUDGED, difference=None, alarms=["contamination", "x"], advisory=["contamination"]
    )
    assert (blocked.has_passed, blocked.reason) == (False, GateReason.ALARM)


def test_current_prm_stays_current_in_spite_of_an_alarm() -> None:
    decision = gate.decide_gate(candidate=JUDGED, difference=None, alarms=["x"], is_current=True)
    assert (decision.has_passed, decision.reason, decision.alarms) == (True, GateReason.SAME, ("x",))
