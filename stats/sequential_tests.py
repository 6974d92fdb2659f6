"""Decide from gold answers when a rater must be paused: Wald's sequential test, then a one-sided CUSUM.

    right adds ln(p₁/p₀), wrong adds ln((1-p₁)/(1-p₀)),   p₁ = p₀ - .15
    SPRT, in the first 60 gold answers: crossing ln((1-β)/α) = 2.944 pauses, crossing -2.944 ends the test (α = β = .05)
    CUSUM, afterward: C_t = max(0, C_{t-1} + the term of answer t); C_t ≥ 7 pauses

p₀ is measured in each project: the accuracy that its own raters reach.

A. Wald (1945), "Sequential tests of statistical hypotheses", doi:10.1214/aoms/1177731118; E. S. Page (1954),
"Continuous inspection schemes", doi:10.1093/biomet/41.1-2.100.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stats.arrays import Bools, Floats, Ints
from stats.estimates import Reason

NEVER_PAUSED = -1
BASELINE_ANSWERS, MIN_BASELINE_RATERS = 200, 5


@dataclass(frozen=True)
class SequentialPlan:
    """`p0` is the accuracy of an acceptable rater, `p1` that of a rater who must be paused."""

    p0: float
    p1: float
    bound: float = math.log(0.95 / 0.05)
    sprt_ends_after: int = 60
    cusum_bound: float = 7.0

    def __post_init__(self) -> None:
        if not 0 < self.p1 < self.p0 < 1:
            raise ValueError(f"a plan requires 0 < p1 < p0 < 1, not p1 = {self.p1} and p0 = {self.p0}")


def make_plan(*, p0: float, drop: float = 0.15) -> SequentialPlan:
    return SequentialPlan(p0=p0, p1=p0 - drop)


def run_tests(right: Bools, plan: SequentialPlan) -> Ints:
    """Run both tests on `right`, which is (runs, gold answers in order).

    Return after how many answers each run is paused, or NEVER_PAUSED.
    """
    terms = np.where(right, math.log(plan.p1 / plan.p0), math.log((1 - plan.p1) / (1 - plan.p0)))
    early = np.cumsum(terms, axis=1)[:, : plan.sprt_ends_after]
    crossed = np.abs(early) >= plan.bound
    ended_at = np.where(crossed.any(axis=1), crossed.argmax(axis=1) + 1, plan.sprt_ends_after)
    is_after = np.arange(1, right.shape[1] + 1) > ended_at[:, None]
    cusum = _cusum(np.where(is_after, terms, 0.0))
    is_end = np.arange(1, early.shape[1] + 1) == ended_at[:, None]
    is_paused_early = (is_end & (early >= plan.bound)).any(axis=1)
    has_alarm = cusum >= plan.cusum_bound
    first_alarm = np.where(has_alarm.any(axis=1), has_alarm.argmax(axis=1) + 1, NEVER_PAUSED)
    return np.where(is_paused_early, ended_at, first_alarm)


def find_pause(right: Sequence[bool], plan: SequentialPlan) -> int | None:
    """Return after how many gold answers one rater is paused, or None."""
    if not right:
        return None
    paused_at = int(run_tests(np.array([right], dtype=np.bool_), plan)[0])
    return None if paused_at == NEVER_PAUSED else paused_at


def baseline_accuracy(*, raters: Sequence[int], right: Sequence[bool]) -> float | Reason:
    """Return p₀ of a project: the 25th percentile of rater accuracy over its first 200 gold answers, in time order.

    If fewer than five raters gave them, the answers up to the first one of the fifth rater are used.
    """
    if len(right) < BASELINE_ANSWERS:
        return Reason.FEW_GOLD
    _, first_answers = np.unique(np.array(raters), return_index=True)
    if len(first_answers) < MIN_BASELINE_RATERS:
        return Reason.FEW_RATERS
    n = max(BASELINE_ANSWERS, int(np.sort(first_answers)[MIN_BASELINE_RATERS - 1]) + 1)
    _, rater = np.unique(np.array(raters[:n]), return_inverse=True)
    return float(np.quantile(np.bincount(rater, weights=np.array(right[:n])) / np.bincount(rater), 0.25))


def expected_false_pauses(
    *, plan: SequentialPlan, gold: int, raters: int = 100, runs: int = 4000, seed: int = 0
) -> float:
    """Simulate how many of `raters` with accuracy p₀ would be paused within `gold` answers."""
    right = np.random.default_rng(seed).random((runs, gold)) < plan.p0
    return float((run_tests(right, plan) != NEVER_PAUSED).mean() * raters)


def _cusum(terms: Floats) -> Floats:
    # max(0, C + term), applied repeatedly, is the height of the running sum above its minimum so far.
    sums = np.cumsum(terms, axis=1)
    lowest = np.minimum(np.minimum.accumulate(sums, axis=1), 0.0)
    return np.asarray(sums - lowest)
