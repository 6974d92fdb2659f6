"""When a rater's gold says that their work must be looked at: Wald's sequential test, then a one-sided CUSUM.

    right adds ln(p₁/p₀), wrong adds ln((1-p₁)/(1-p₀)),   p₁ = p₀ - .15
    SPRT, in the first 60 gold: crossing ln((1-β)/α) = 2.944 pauses, crossing -2.944 ends the test (α = β = .05)
    CUSUM, afterwards: C_t = max(0, C_{t-1} + what t adds); C_t ≥ 7 pauses

p₀ belongs to the project: what its own raters reach. Crossing pauses and tells the lead, it never bans.

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
BASELINE_ANSWERS, MIN_BASELINE_RATERS = 200, 5  # gold judgments and raters that a starting point is measured on


@dataclass(frozen=True)
class SequentialPlan:
    """`p0` is the accuracy of a rater who may go on, `p1` that of one who must be looked at."""

    p0: float
    p1: float
    bound: float = math.log(0.95 / 0.05)
    sprt_ends_after: int = 60
    cusum_bound: float = 7.0

    def __post_init__(self) -> None:
        if not 0 < self.p1 < self.p0 < 1:
            raise ValueError(f"a plan needs 0 < p1 < p0 < 1, not p1 = {self.p1} and p0 = {self.p0}")


@dataclass(frozen=True)
class SequentialRun:
    """Per run: the sums after each gold, when the first test ended, and the gold that paused the rater (or NEVER).

    Both say how many gold traces had been answered. After a pause the sums go on as if nothing had happened.
    """

    sprt: Floats
    cusum: Floats
    tested_at: Ints
    paused_at: Ints


def make_plan(*, p0: float, drop: float = 0.15) -> SequentialPlan:
    return SequentialPlan(p0=p0, p1=p0 - drop)


def run_tests(right: Bools, plan: SequentialPlan) -> SequentialRun:
    """`right` is (runs, gold in the order they were answered)."""
    gains = np.where(right, math.log(plan.p1 / plan.p0), math.log((1 - plan.p1) / (1 - plan.p0)))
    sprt = np.cumsum(gains, axis=1)
    early = sprt[:, : plan.sprt_ends_after]
    crossed = np.abs(early) >= plan.bound
    ended_at = np.where(crossed.any(axis=1), crossed.argmax(axis=1) + 1, plan.sprt_ends_after)
    is_after = np.arange(1, right.shape[1] + 1) > ended_at[:, None]
    cusum = _cusum(np.where(is_after, gains, 0.0))
    fell = np.arange(1, early.shape[1] + 1) == ended_at[:, None]
    paused_early = np.where((fell & (early >= plan.bound)).any(axis=1), ended_at, NEVER_PAUSED)
    tested_at = np.where(ended_at <= right.shape[1], ended_at, NEVER_PAUSED)
    return SequentialRun(
        sprt,
        cusum,
        tested_at,
        np.where(paused_early != NEVER_PAUSED, paused_early, _first_crossing(cusum >= plan.cusum_bound)),
    )


def find_pause(right: Sequence[bool], plan: SequentialPlan) -> int | None:
    """Of one rater: after how many gold traces the work is to be looked at, if ever."""
    if not right:
        return None
    found = int(run_tests(np.array([right], dtype=np.bool_), plan).paused_at[0])
    return None if found == NEVER_PAUSED else found


def baseline_accuracy(*, raters: Sequence[int], right: Sequence[bool]) -> float | Reason:
    """p₀ of a project: the 25th percentile of the raters' accuracy over its first 200 gold judgments, in time order.
    Where fewer than five raters gave those, further ones are read until the fifth has answered."""
    if len(right) < BASELINE_ANSWERS:
        return Reason.FEW_GOLD
    _, begun = np.unique(np.array(raters), return_index=True)
    if len(begun) < MIN_BASELINE_RATERS:
        return Reason.FEW_RATERS
    n = max(BASELINE_ANSWERS, int(np.sort(begun)[MIN_BASELINE_RATERS - 1]) + 1)
    _, rater = np.unique(np.array(raters[:n]), return_inverse=True)
    return float(np.quantile(np.bincount(rater, weights=np.array(right[:n])) / np.bincount(rater), 0.25))


def expected_false_pauses(
    *, plan: SequentialPlan, gold: int, raters: int = 100, runs: int = 4000, seed: int = 0
) -> float:
    """How many of so many raters at exactly p₀ would be paused within so much gold."""
    answered = np.random.default_rng(seed).random((runs, gold)) < plan.p0
    return float((run_tests(answered, plan).paused_at != NEVER_PAUSED).mean() * raters)


def _cusum(gains: Floats) -> Floats:
    """max(0, C + gain) step by step is the sum's height above its lowest point so far."""
    sums = np.cumsum(gains, axis=1)
    lowest = np.minimum(np.minimum.accumulate(sums, axis=1), 0.0)
    return np.asarray(sums - lowest)


def _first_crossing(crossed: Bools) -> Ints:
    return np.where(crossed.any(axis=1), crossed.argmax(axis=1) + 1, NEVER_PAUSED)
