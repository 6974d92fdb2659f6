"""Raters of known quality on traces with a known first error: for benchmarks and for tests of consensus.

Three kinds: `own` raters follow the first-error Dawid–Skene model; `forgetful` raters lose accuracy along a trace and
place errors one step too late; `correlated` raters miss the same errors in a fifth of the traces.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from stats import first_error_reports
from stats.arrays import Bools, Floats, Ints
from stats.first_error_reports import ReportArrays

Kind = Literal["own", "forgetful", "correlated"]


@dataclass(frozen=True)
class SimulatedCrowd:
    """The reports, and the first error of every trace (T without an error)."""

    reports: ReportArrays
    truth: Ints


def simulate_crowd(
    *, traces: int, raters_per_trace: int, kind: Kind = "own", pool: int = 20, seed: int = 0
) -> SimulatedCrowd:
    random = np.random.default_rng(seed)
    lengths = random.integers(3, 15, traces)
    truth = _stops(np.full((traces, 14), 0.06), lengths, random)
    trace = np.repeat(np.arange(traces), raters_per_trace)
    rater = np.argsort(random.random((traces, pool)), axis=1)[:, :raters_per_trace].ravel()
    chances = _chances(truth[trace], rater, kind, pool, random, is_blind=(random.random(traces) < 0.2)[trace])
    ends = _stops(chances, lengths[trace], random)
    if kind == "forgetful":
        ends = np.where((ends < lengths[trace]) & (random.random(len(ends)) < 0.15), ends + 1, ends)
    positions = np.where(ends >= lengths[trace], -1, ends)
    return SimulatedCrowd(
        first_error_reports.reports_from_positions(traces=trace, raters=rater, positions=positions, lengths=lengths),
        truth,
    )


def _chances(
    truth: Ints, rater: Ints, kind: Kind, pool: int, random: np.random.Generator, *, is_blind: Bools
) -> Floats:
    """Return the probability that the rater stops at a step they reach, as (reports, steps)."""
    false_alarm, detection, late = random.beta(1.5, 40, pool), random.beta(6, 3, pool), random.beta(3, 6, pool)
    step = np.arange(14)
    before, at = step < truth[:, None], step == truth[:, None]
    chances = np.where(before, false_alarm[rater, None], np.where(at, detection[rater, None], late[rater, None]))
    if kind == "forgetful":
        chances = np.where(before, chances, chances * np.exp(-0.08 * step))
    if kind == "correlated":
        chances = np.where(is_blind[:, None] & ~before, 0.05, chances)
    return chances


def _stops(chances: Floats, lengths: Ints, random: np.random.Generator) -> Ints:
    """Draw the first step at which an event with these probabilities occurs, or the length."""
    happens = random.random(chances.shape) < chances
    first = np.where(happens.any(axis=1), happens.argmax(axis=1), chances.shape[1])
    return np.asarray(np.minimum(first, lengths), dtype=np.int64)
