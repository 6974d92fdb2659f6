"""The gate accepts what is shown not to be worse, rejects what is worse, and says what it cannot tell."""

import numpy as np
import pytest

from prm.evaluation import gate
from prm.evaluation.gate import GateReason, PRMComparison, Verdict
from prm.evaluation.labeled_steps import LabeledSteps
from stats.arrays import Floats
from stats.estimates import Estimate, Interval, Reason, UnitCounts

COUNTS = UnitCounts(units=50, pairable=50, problems=20)
EVALUATED = Estimate(0.6, COUNTS, interval=Interval(0.5, 0.7, 0.95, "x"), bootstrap_reason=Reason.NOT_DRAWN)
UNEVALUATED = Estimate(
    None, COUNTS, reason=Reason.NO_CASES, interval_reason=Reason.UNDEFINED, bootstrap_reason=Reason.NOT_DRAWN
)


def compared(low: float, high: float) -> PRMComparison:
    return PRMComparison(0.05, 500, 100, (low + high) / 2, low, high, 0.1)


@pytest.mark.parametrize(
    ("candidate", "comparison", "alarms", "verdict", "reason"),
    [
        (EVALUATED, None, [], Verdict.ACCEPTED, GateReason.FIRST),
        (UNEVALUATED, None, [], Verdict.ACCEPTED, GateReason.FIRST_UNEVALUATED),
        (EVALUATED, None, ["contamination"], Verdict.REJECTED, GateReason.ALARM),
        (EVALUATED, compared(0.01, 0.1), [], Verdict.ACCEPTED, GateReason.BETTER),
        (EVALUATED, compared(-0.04, 0.02), [], Verdict.ACCEPTED, GateReason.NOT_WORSE),
        (EVALUATED, compared(-0.06, 0.08), [], Verdict.UNDECIDED, GateReason.TOO_FEW),
        (EVALUATED, compared(-0.04, -0.01), [], Verdict.REJECTED, GateReason.WORSE),  # however little
        (EVALUATED, compared(0.01, 0.1), ["x"], Verdict.REJECTED, GateReason.ALARM),
        (EVALUATED, PRMComparison(0.05, 3, 2, 0.2), [], Verdict.UNDECIDED, GateReason.TOO_FEW),
        (EVALUATED, PRMComparison(0.05, 0, 0), [], Verdict.UNDECIDED, GateReason.NOT_COMPARABLE),
    ],
)
def test_verdict_follows_from_interval_and_margin(
    candidate: Estimate, comparison: PRMComparison | None, alarms: list[str], verdict: Verdict, reason: GateReason
) -> None:
    decided = gate.decide_gate(candidate=candidate, comparison=comparison, alarms=alarms)
    assert (decided, decided.verdict) == (reason, verdict)


def test_only_alarms_that_are_not_advisory_block() -> None:
    passed = gate.decide_gate(candidate=EVALUATED, comparison=None, alarms=["y"], advisory=["y"])
    blocked = gate.decide_gate(candidate=EVALUATED, comparison=None, alarms=["x", "y"], advisory=["y"])
    assert (passed, blocked) == (GateReason.FIRST, GateReason.ALARM)


def test_current_prm_stays_and_a_prm_without_scores_is_not_decided() -> None:
    same = gate.decide_gate(candidate=EVALUATED, comparison=None, alarms=["x"], is_current=True)
    missing = gate.decide_gate(candidate=UNEVALUATED, comparison=None, alarms=[], has_scores=False)
    assert (same.verdict, missing.verdict) == (Verdict.ACCEPTED, Verdict.UNDECIDED)
    assert missing is GateReason.NO_SCORES


# --- comparison -------------------------------------------------------------------------------------------------------


def make_pair(*, problems: int, worse_by: float, seed: int) -> tuple[LabeledSteps, Floats]:
    """Make one wrong step and five right ones per problem, and the scores of two PRMs.

    In the share `worse_by` of the problems, the candidate scores the wrong step like a right one.
    """
    random = np.random.default_rng([seed, problems])
    index = np.tile(np.arange(6), problems)
    is_wrong = index == np.repeat(random.integers(0, 6, problems), 6)
    base = random.normal(size=6 * problems) + 1.0 * is_wrong
    current, candidate = (base + random.normal(scale=0.4, size=len(base)) for _ in range(2))
    is_lost = np.repeat(random.random(problems) < worse_by, 6) & is_wrong
    candidate[is_lost] -= 1.0
    zeros = np.zeros(len(base), dtype=np.int64)
    number = np.repeat(np.arange(problems), 6)
    steps = LabeledSteps(candidate, is_wrong, zeros.astype(np.float64), zeros, number, number, zeros)
    return steps, current


def verdicts(*, problems: int, worse_by: float, runs: int = 60) -> list[Verdict]:
    found = []
    for seed in range(runs):
        steps, current = make_pair(problems=problems, worse_by=worse_by, seed=seed)
        comparison = gate.compare_prms(steps, current, margin=0.05)
        found.append(gate.decide_gate(candidate=EVALUATED, comparison=comparison, alarms=[]).verdict)
    return found


@pytest.mark.fault
def test_equal_prm_is_accepted_on_many_problems_and_undecided_on_few() -> None:
    assert verdicts(problems=250, worse_by=0.0).count(Verdict.ACCEPTED) > 50
    assert set(verdicts(problems=20, worse_by=0.0)) == {Verdict.UNDECIDED}


@pytest.mark.fault
def test_prm_that_is_worse_by_the_margin_is_hardly_ever_accepted() -> None:
    """Losing the difference of one standard deviation in 20 % of problems costs about 0.05 AUC."""
    for problems in (40, 100, 250):
        assert verdicts(problems=problems, worse_by=0.2).count(Verdict.ACCEPTED) <= 4
    assert verdicts(problems=250, worse_by=0.6).count(Verdict.REJECTED) > 55


def test_power_is_stated() -> None:
    """About 80 % of candidates that differ by the detectable change are found; the missing problems suffice."""
    steps, current = make_pair(problems=60, worse_by=0.0, seed=1)
    comparison = gate.compare_prms(steps, current, margin=0.05)
    assert comparison.detectable is not None
    assert 0.05 < comparison.detectable < 0.2
    assert (comparison.n_problems, comparison.n_pairs) == (60, 60 * 300)
    assert comparison.missing > 14  # 3.69 / 60 is above the margin
    enough = verdicts(problems=60 + comparison.missing, worse_by=0.0)
    assert enough.count(Verdict.ACCEPTED) / len(enough) > 0.6
    larger = gate.compare_prms(*make_pair(problems=120, worse_by=0.0, seed=1), margin=0.05)
    assert larger.detectable is not None
    assert larger.detectable < comparison.detectable


def test_few_problems_accept_nothing_even_if_no_problem_shows_a_change() -> None:
    """A monotone change of the scores changes no pair, so the spread is zero."""
    for problems, expected in ((60, Verdict.UNDECIDED), (90, Verdict.ACCEPTED)):
        steps, _ = make_pair(problems=problems, worse_by=0.0, seed=2)
        comparison = gate.compare_prms(steps, 2 * steps.p_wrong, margin=0.05)
        assert comparison.difference == 0
        assert gate.decide_gate(candidate=EVALUATED, comparison=comparison, alarms=[]).verdict == expected
    few, current = make_pair(problems=3, worse_by=0.0, seed=3)
    comparison = gate.compare_prms(few, current, margin=0.05)
    assert (comparison.low, comparison.detectable, comparison.missing) == (None, None, 71)


def test_prm_with_the_same_scores_is_accepted() -> None:
    steps, _ = make_pair(problems=10, worse_by=0.0, seed=4)
    comparison = gate.compare_prms(steps, steps.p_wrong.copy(), margin=0.05)
    assert gate.decide_gate(candidate=EVALUATED, comparison=comparison, alarms=[]) is GateReason.NOT_WORSE


def test_nothing_to_compare_is_undecided() -> None:
    steps, current = make_pair(problems=10, worse_by=0.0, seed=5)
    right = LabeledSteps(**{**vars(steps), "is_wrong": np.zeros(60, dtype=np.bool_)})
    comparison = gate.compare_prms(right, current, margin=0.05)
    assert (comparison.n_pairs, comparison.difference) == (0, None)
    assert gate.decide_gate(candidate=EVALUATED, comparison=comparison, alarms=[]) is GateReason.NOT_COMPARABLE
