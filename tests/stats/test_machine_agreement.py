"""Agreement of a machine with people: hand-counted cases, and coverage in simulated worlds."""

import numpy as np
import pytest

from bench import machine_raters
from stats import (
    machine_agreement,
)
from stats.machine_agreement import MachinePairs


def test_errors_by_position_count_the_steps_that_the_machine_reached() -> None:
    machine, truth = np.array([1, 5, 3, 6]), np.array([3, 3, 3, 6])
    lengths, problems = np.array([5, 5, 6, 6]), np.arange(4)
    found = machine_agreement.estimate_errors(machine, truth, lengths, problems, ranges=((1, 2), (3, None)))
    assert [(row.n_hits, row.n_cases) for row in found.missed_by_position] == [(0, 0), (1, 3)]
    assert [(row.n_hits, row.n_cases) for row in found.false_alarms_by_position] == [(1, 8), (0, 6)]
    assert found.false_alarms.value == pytest.approx(1 / 14)


def test_machine_agreement_of_hand_counted_pairs() -> None:
    pairs = MachinePairs(
        np.array([2, 4, 4, 0]), np.array([2, 4, 3, 1]), np.zeros(4, np.bool_), np.full(4, 4), np.arange(4)
    )
    found = machine_agreement.estimate_first_errors(pairs)
    assert (found.exact.value, found.within_one.value, found.pairs) == (0.5, 0.75, 4)
    steps = machine_agreement.estimate_steps(np.array([1, 1, -1, -1]), np.array([1, 1, -1, 1]), np.arange(4))
    assert steps["pairwise_agreement"].value == 0.75
    # Two coders, four units: 1 - 7 · 2 / (2 · 5 · 3)
    assert steps["alpha_nominal"].value == pytest.approx(1 - 7 * 2 / 30)


@pytest.mark.fault
def test_intervals_cover_the_truth_of_simulated_worlds() -> None:
    covered = machine_raters.measure_passport(sizes=(100,), worlds=200)
    assert len(covered) == 10
    # 200 worlds measure a coverage of .95 to ± .03; the mean of all figures is known better.
    assert {name: share for name, share in covered.items() if share < 0.91} == {}
    assert 0.93 <= np.mean(list(covered.values())) <= 0.97
