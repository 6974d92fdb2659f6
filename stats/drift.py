"""Detect from a stream of re-tests that a licensed machine has become worse: a CUSUM with exact error rates.

    S_t = max(0, S_{t-1} + w)  if the machine disagrees with people,   max(0, S_{t-1} - 1)  if it agrees
    alarm when S_t ≥ h

w is the rounded ratio of the likelihood terms ln(q1/q0) and -ln(p1/p0) of Page's optimal test, q = 1 - p, where p0 is
the precision at which the machine was licensed and p1 = p0 - .1. Whole numbers make S a Markov chain on 0 … h, so its
error rates are computed, not bounded or simulated. h is the largest threshold that still catches a drop by .1 within 60
re-tests with probability .92. What is left is the rate of false alarms, which is reported: a drop of ten points within
sixty yes-or-no results cannot be told from chance for free. An unchanged machine is suspended about once in 870
re-tests at p0 = .98, 260 at .95 and 130 at .9; a false alarm costs a renewed license, not a wrong label.

A better machine raises fewer alarms: S increases with every disagreement.

E. S. Page (1954), doi:10.1093/biomet/41.1-2.100; D. Brook, D. A. Evans (1972), "An approach to the probability
distribution of CUSUM run length", doi:10.1093/biomet/59.3.539.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stats.arrays import Floats

DROP, HORIZON, POWER = 0.1, 60, 0.92
_MAX_P0, _MIN_P0 = 0.99, 0.2
_MAX_WEIGHT_SUM = 400


@dataclass(frozen=True)
class DriftPlan:
    """`weight` is added per disagreement, `threshold` gives the alarm.

    `power` is the probability that a drop by `DROP` is caught within `HORIZON` re-tests; `false_alarms` that an
    unchanged machine raises an alarm within as many; `run_length` the mean number of re-tests to a false alarm.
    """

    p0: float
    weight: int
    threshold: int
    power: float
    false_alarms: float
    run_length: float


@functools.lru_cache(maxsize=256)
def plan_drift_test(p0: float) -> DriftPlan:
    """Return the test for a machine that was licensed at this precision."""
    p0 = min(max(round(p0, 3), _MIN_P0), _MAX_P0)
    p1 = p0 - DROP
    weight = max(1, round(math.log((1 - p1) / (1 - p0)) / math.log(p0 / p1)))
    threshold = 1
    while threshold < _MAX_WEIGHT_SUM and alarm_probability(p1, weight, threshold + 1) >= POWER:
        threshold += 1
    return DriftPlan(
        p0=p0,
        weight=weight,
        threshold=threshold,
        power=alarm_probability(p1, weight, threshold),
        false_alarms=alarm_probability(p0, weight, threshold),
        run_length=mean_run_length(p0, weight, threshold),
    )


def alarm_probability(p: float, weight: int, threshold: int, horizon: int = HORIZON) -> float:
    """Return the probability of an alarm within `horizon` re-tests of a machine that agrees with probability p."""
    state = np.zeros(threshold)
    state[0] = 1.0
    chain = _transitions(p, weight, threshold)
    for _ in range(horizon):
        state = state @ chain
    return float(1.0 - state.sum())


def mean_run_length(p: float, weight: int, threshold: int) -> float:
    chain = _transitions(p, weight, threshold)
    return float(np.linalg.solve(np.eye(threshold) - chain, np.ones(threshold))[0])


def _transitions(p: float, weight: int, threshold: int) -> Floats:
    """Return the chain without its absorbing state."""
    chain = np.zeros((threshold, threshold))
    places = np.arange(threshold)
    chain[places, np.maximum(places - 1, 0)] = p
    stays = places + weight < threshold
    chain[places[stays], places[stays] + weight] += 1 - p
    return chain


def find_alarm(agrees: Sequence[bool], plan: DriftPlan) -> int | None:
    """Return after how many re-tests there is an alarm, or None."""
    level = 0
    for number, is_same in enumerate(agrees, 1):
        level = max(0, level - 1) if is_same else level + plan.weight
        if level >= plan.threshold:
            return number
    return None
