"""Shares by problem: a plain value, and an interval clustered by problem."""

import numpy as np
import pytest

from stats import estimation
from stats.estimates import Reason


def test_missing_share_or_interval_has_a_reason() -> None:
    assert estimation.estimate_share_by_problem({}).reason == Reason.NO_CASES
    few = estimation.estimate_share_by_problem({1: (1, 2), 2: (0, 2)})
    assert (few.value, few.interval_reason) == (0.25, Reason.FEW_PROBLEMS)
    assert estimation.estimate_share_by_problem(dict.fromkeys(range(8), (0, 3))).interval_reason == Reason.NO_SPREAD


def test_problem_without_a_case_is_none() -> None:
    """Five problems have something to say, and so there is an interval; the sixth is neither counted nor left out."""
    some = {problem: (problem % 2, 3) for problem in range(5)}
    assert estimation.estimate_share_by_problem(some | {5: (0, 0)}) == estimation.estimate_share_by_problem(some)
    assert estimation.estimate_share_by_problem(some).counts.problems == 5


@pytest.mark.parametrize("per_problem", [1, 10])
def test_interval_covers_clustered_cases(per_problem: int) -> None:
    """Problems differ in how often they are missed; a nominal 95 % interval holds the mean in about so many samples."""
    random, held, runs = np.random.default_rng(5), 0, 300
    for _ in range(runs):
        hard = random.beta(1, 2, size=30)
        wrong = random.binomial(per_problem, hard)
        found = estimation.estimate_share_by_problem({n: (int(each), per_problem) for n, each in enumerate(wrong)})
        held += found.interval is not None and found.interval.low <= 1 / 3 <= found.interval.high
    assert 0.91 <= held / runs <= 0.99
