"""Agreement of one machine with people, and its errors by position. Intervals by problem.

Each (machine, person) pair on a trace or a step is a unit with two ratings, so agreement among people does not enter.
The figures are those of `agreement`: first error exact, within ±1, has-error kappa, and percent agreement and
Krippendorff's alpha of steps.

Errors by position compare the machine with a reference (gold, or the consensus of people), with first errors F and E:

    missed errors  F > E, among traces with an error, by the position of E
    false alarms   F = t, among steps t < E that the machine reached (t ≤ F), by the position t

Steps after the machine's first error are censored, as for people.

K. Krippendorff (2019), doi:10.4135/9781071878781; C. Zheng et al. (2024), "ProcessBench", arXiv:2412.06559.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stats import agreement, estimation, rating_patterns
from stats.agreement import FirstErrorAgreement
from stats.arrays import Bools, Ints
from stats.estimates import Estimate
from stats.first_error_reports import ReportArrays

# First and last step of each range, counted from 1; None is the end of the trace.
POSITION_RANGES: tuple[tuple[int, int | None], ...] = ((1, 2), (3, 5), (6, 10), (11, None))


@dataclass(frozen=True)
class MachinePairs:
    """One row per (trace, person): where machine and person end, the length of the trace, and its problem.

    An end is the first error, or the length for "no error". A censored report of the person ends where it was given up.
    """

    machine_ends: Ints
    person_ends: Ints
    is_censored: Bools
    lengths: Ints
    problems: Ints


def estimate_first_errors(pairs: MachinePairs) -> FirstErrorAgreement:
    n = len(pairs.lengths)
    zeros, ones = np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.int64)
    _, problems = np.unique(pairs.problems, return_inverse=True)
    reports = ReportArrays(
        traces=np.tile(np.arange(n), 2),
        raters=np.concatenate([zeros, ones]),
        ends=np.concatenate([pairs.machine_ends, pairs.person_ends]),
        is_censored=np.concatenate([zeros.astype(np.bool_), pairs.is_censored]),
        lengths=pairs.lengths,
        problems=problems.astype(np.int64),
        domains=zeros,
    )
    return agreement.estimate_first_error_agreement(reports, with_bootstrap=False)


STEP_STATISTICS = ("pairwise_agreement", "alpha_nominal")


def estimate_steps(machine: Ints, person: Ints, problems: Ints) -> dict[str, Estimate]:
    """Estimate the agreement on steps. `machine` and `person` are the ratings -1, 0, 1 of each pair."""
    n = len(machine)
    _, numbers = np.unique(problems, return_inverse=True)
    patterns = rating_patterns.merge_equal_patterns(
        rating_patterns.count_patterns(
            units=np.tile(np.arange(n), 2),
            labels=np.concatenate([machine, person]) + 1,
            problem_of_unit=numbers.astype(np.int64),
        )
    )
    return agreement.estimate_step_statistics(patterns, names=STEP_STATISTICS, with_bootstrap=False)


@dataclass(frozen=True)
class PositionErrors:
    """Missed errors or false alarms at the steps `first` to `last`, counted from 1."""

    first: int
    last: int | None
    n_cases: int
    n_hits: int
    estimate: Estimate


@dataclass(frozen=True)
class MachineErrors:
    missed: Estimate  # at all positions
    false_alarms: Estimate
    missed_by_position: tuple[PositionErrors, ...]
    false_alarms_by_position: tuple[PositionErrors, ...]


def estimate_errors(
    machine_ends: Ints,
    reference_ends: Ints,
    lengths: Ints,
    problems: Ints,
    *,
    ranges: Sequence[tuple[int, int | None]] = POSITION_RANGES,
) -> MachineErrors:
    """Estimate missed errors and false alarms against a reference."""
    _, problem = np.unique(problems, return_inverse=True)
    has_error = reference_ends < lengths
    missed = np.column_stack([machine_ends > reference_ends, has_error]).astype(np.int64)
    n_sound = np.minimum(reference_ends, lengths)
    rows_missed, rows_alarm = [], []
    for first, last in ranges:
        start, end = first - 1, int(lengths.max(initial=0)) if last is None else last
        is_here = has_error & (reference_ends >= start) & (reference_ends < end)
        rows_missed.append(_count_range(first, last, missed * is_here[:, None].astype(np.int64), problem))
        # Steps of this range that are correct and that the machine reached.
        reached = np.minimum(np.minimum(n_sound, machine_ends + 1), end) - start
        is_alarm = (machine_ends >= start) & (machine_ends < end) & (machine_ends < n_sound)
        counts = np.column_stack([is_alarm, np.maximum(reached, 0)])
        rows_alarm.append(_count_range(first, last, counts, problem))
    alarms = np.column_stack([machine_ends < n_sound, np.minimum(n_sound, machine_ends + 1)])
    return MachineErrors(
        _count_range(1, None, missed * has_error[:, None].astype(np.int64), problem).estimate,
        _count_range(1, None, alarms, problem).estimate,
        tuple(rows_missed),
        tuple(rows_alarm),
    )


def _count_range(first: int, last: int | None, counts: Ints, problem: Ints) -> PositionErrors:
    """Add up (hits, cases) by problem."""
    hits, cases = (np.bincount(problem, weights=column).astype(np.int64) for column in counts.T)
    estimate = estimation.estimate_share(hits, cases)
    return PositionErrors(first, last, int(cases.sum()), int(hits.sum()), estimate)
