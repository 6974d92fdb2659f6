"""The bootstrap: draws, minimum number of problems, and quantiles."""

import math

import numpy as np
import pytest

from stats import bootstrap, coefficients, estimation, rating_patterns
from stats.arrays import Floats
from stats.estimates import Reason
from stats.estimation import Statistic
from tests.stats.test_intervals_jackknife import ROWS


def draws(copies: list[int]) -> Floats:
    """Two problems' worth of sums in each kind, a 1 beside them that counts the problems of a draw."""
    kinds = np.column_stack([np.arange(len(copies)), np.ones(len(copies))]).astype(np.float64)
    found = bootstrap.draw_resamples(sums=kinds, copies=np.array(copies), rest=np.array([100.0, 0.5]))
    assert not isinstance(found, Reason)
    return found


@pytest.mark.parametrize("copies", [[1] * 40, [30, 10, 80]])
def test_bootstrap_draws_as_many_problems_as_there_are_and_keeps_the_rest(copies: list[int]) -> None:
    found = draws(copies)
    n, kinds = sum(copies), np.arange(len(copies))
    assert (found[:, 1] == n + 0.5).all()
    mean = float(np.dot(copies, kinds) / n)
    variance = float(np.dot(copies, (kinds - mean) ** 2) / n)
    assert found[:, 0].mean() == pytest.approx(100 + n * mean, abs=5 * math.sqrt(n * variance / 1000))
    assert found[:, 0].std() == pytest.approx(math.sqrt(n * variance), rel=0.1)


def test_bootstrap_is_drawn_from_thirty_problems_on() -> None:
    few = bootstrap.draw_resamples(sums=np.ones((29, 1)), copies=np.ones(29, dtype=np.int64), rest=np.zeros(1))
    assert few == Reason.FEW_FOR_BOOTSTRAP
    assert len(draws([1] * 30)) == 1000


@pytest.mark.parametrize(("level", "ends"), [(0.95, (0.025, 0.975)), (0.8, (0.1, 0.9))])
def test_bootstrap_interval_runs_between_the_quantiles_of_the_draws(level: float, ends: tuple[float, float]) -> None:
    copied = [(problem * 10 + row[0], row[1], row[2]) for problem in range(6) for row in ROWS]
    pairs, sample = estimation.sample_from_patterns(rating_patterns.patterns_from_rows(copied))

    def share(matrix: Floats) -> Floats:
        return coefficients.pairwise_agreement(pairs.put(matrix))

    found = estimation.estimate(statistic=Statistic(share, 0.0, Reason.NO_PAIRS), sample=sample, level=level)
    drawn = bootstrap.draw_resamples(sums=sample.matrix, copies=sample.copies, rest=sample.rest)
    assert not isinstance(drawn, Reason)
    assert found.bootstrap is not None
    expected = np.quantile(share(drawn), ends)
    assert (found.bootstrap.low, found.bootstrap.high) == pytest.approx(tuple(expected))


def test_bootstrap_of_very_many_problems_draws_groups_of_them() -> None:
    """Nothing is lost, as many are drawn as there are, and the spread is that of problems."""
    sums = np.random.default_rng(3).gamma(2.0, size=(3 * bootstrap.MAX_GROUPS, 2))
    copies = np.random.default_rng(4).integers(1, 4, len(sums))
    found = bootstrap.draw_resamples(sums=sums, copies=copies, rest=np.array([5.0, 0.0]))
    assert not isinstance(found, Reason)
    total, problems = copies @ sums, np.repeat(sums, copies, axis=0)
    spread = np.sqrt(len(problems)) * problems.std(axis=0)
    assert found.mean(axis=0) == pytest.approx([total[0] + 5, total[1]], abs=5 * spread.max() / math.sqrt(1000))
    assert found.std(axis=0) == pytest.approx(spread, rel=0.1)
    together = np.cov(problems.T)[0, 1] * len(problems)
    assert np.cov(found.T)[0, 1] == pytest.approx(together, abs=0.15 * spread.prod())
