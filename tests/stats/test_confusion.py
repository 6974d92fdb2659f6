"""Recall, over-credit, over-blame and kappa from tables per problem."""

import numpy as np
import pytest

from stats import confusion, estimation, weights
from stats.estimates import Reason

REFERENCE = np.array([0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 2])
GIVEN = np.array([0, 0, 1, 2, 1, 2, 2, 2, 2, 2, 1, 0])


def sample() -> estimation.ClusterSample:
    problems = np.arange(12) // 2
    return confusion.sample_from_tables(
        confusion.count_tables(reference=REFERENCE, given=GIVEN, problems=problems, k=3, n_problems=6)
    )


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [
        (confusion.recall(place=0, k=3), 2 / 4),
        (confusion.recall(place=1, k=3), 1 / 2),
        (confusion.recall(place=2, k=3), 4 / 6),
        (confusion.missed_errors(negative=0, k=3), 2 / 4),
        (confusion.false_alarms(negative=0, k=3), 1 / 8),
        (confusion.accuracy(k=3), 7 / 12),
    ],
)
def test_shares_equal_counting(statistic: estimation.Statistic, expected: float) -> None:
    found = estimation.estimate(statistic=statistic, sample=sample())
    assert found.value == pytest.approx(expected)
    assert found.counts.units == 12


def test_over_credit_is_what_negative_recall_misses() -> None:
    missed = estimation.estimate(statistic=confusion.missed_errors(negative=0, k=3), sample=sample())
    found = estimation.estimate(statistic=confusion.recall(place=0, k=3), sample=sample())
    assert missed.value == pytest.approx(1 - (found.value or 0))


def test_share_of_no_case_says_so() -> None:
    positive = np.full(12, 2)
    tables = confusion.count_tables(reference=positive, given=GIVEN, problems=np.arange(12) // 2, k=3, n_problems=6)
    found = estimation.estimate(
        statistic=confusion.missed_errors(negative=0, k=3), sample=confusion.sample_from_tables(tables)
    )
    assert found.reason == Reason.NO_CASES


def test_kappa_of_a_table_has_an_interval() -> None:
    """Fleiss, Cohen and Everitt's example in miniature: the linear weight forgives neighbours."""
    values = (-1.0, 0.0, 1.0)
    plain = estimation.estimate(statistic=confusion.cohen_kappa_statistic(values=values), sample=sample())
    linear = estimation.estimate(
        statistic=confusion.cohen_kappa_statistic(values=values, weight=weights.linear(values)), sample=sample()
    )
    assert plain.value is not None
    assert plain.interval is not None
    assert linear.value is not None
    one = confusion.count_tables(
        reference=np.zeros(6, int), given=np.zeros(6, int), problems=np.arange(6), k=3, n_problems=6
    )
    same = estimation.estimate(
        statistic=confusion.cohen_kappa_statistic(values=values), sample=confusion.sample_from_tables(one)
    )
    assert same.reason == Reason.NO_VARIATION


def test_sample_of_nothing_says_why() -> None:
    sample = confusion.sample_from_tables(np.zeros((0, 3, 3)))
    found = estimation.estimate(statistic=confusion.missed_errors(negative=0, k=3), sample=sample)
    assert (found.value, found.reason) == (None, Reason.NO_CASES)
