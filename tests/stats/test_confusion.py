"""Recall, missed errors and false alarms from tables per problem."""

import numpy as np
import pytest

from stats import confusion, estimation
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
    ],
)
def test_shares_equal_counting(statistic: estimation.Statistic, expected: float) -> None:
    found = estimation.estimate(statistic=statistic, sample=sample())
    assert found.value == pytest.approx(expected)
    assert found.counts.units == 12


def test_missed_errors_are_the_complement_of_negative_recall() -> None:
    missed = estimation.estimate(statistic=confusion.missed_errors(negative=0, k=3), sample=sample())
    found = estimation.estimate(statistic=confusion.recall(place=0, k=3), sample=sample())
    assert missed.value == pytest.approx(1 - (found.value or 0))


def test_share_without_cases_has_a_reason() -> None:
    positive = np.full(12, 2)
    tables = confusion.count_tables(reference=positive, given=GIVEN, problems=np.arange(12) // 2, k=3, n_problems=6)
    found = estimation.estimate(
        statistic=confusion.missed_errors(negative=0, k=3), sample=confusion.sample_from_tables(tables)
    )
    assert found.reason == Reason.NO_CASES


def test_empty_sample_has_a_reason() -> None:
    sample = confusion.sample_from_tables(np.zeros((0, 3, 3)))
    found = estimation.estimate(statistic=confusion.missed_errors(negative=0, k=3), sample=sample)
    assert (found.value, found.reason) == (None, Reason.NO_CASES)
