"""Jobs step aside for people, on the engine where they would be in the way."""

import datetime as dt
from collections.abc import Iterator

import pytest
from django.db import connection

from jobs import yielding
from tests.factories import NOW

pytestmark = pytest.mark.django_db
on_sqlite = connection.vendor == "sqlite"


@pytest.fixture
def asked() -> Iterator[list[dt.datetime]]:
    """A room where somebody worked half a minute ago. Says what it was asked."""
    asked: list[dt.datetime] = []

    def somebody_worked_since(since: dt.datetime) -> bool:
        asked.append(since)
        return since <= NOW - dt.timedelta(seconds=30)

    before = list(yielding._questions)
    yielding._questions[:] = []
    yielding._answer = (0.0, False)
    yielding.register(somebody_worked_since)
    yielding.register(somebody_worked_since)
    yield asked
    yielding._questions[:] = before
    yielding._answer = (0.0, False)


def test_pause_is_three_times_as_long_while_somebody_works(asked: list[dt.datetime]) -> None:
    slept: list[float] = []
    assert yielding.pause(0.01, now=NOW, sleep=slept.append) == pytest.approx(0.03 if on_sqlite else 0)
    assert slept == ([pytest.approx(0.03)] if on_sqlite else [])
    assert asked == ([NOW - dt.timedelta(seconds=60)] if on_sqlite else [])


def test_pause_is_a_fifth_of_the_transaction_when_nobody_works(asked: list[dt.datetime]) -> None:
    wanted = yielding.wanted(0.01, now=NOW + dt.timedelta(seconds=31))
    assert wanted == pytest.approx(0.002 if on_sqlite else 0)


def test_pause_is_longer_where_people_kept_the_job_waiting(asked: list[dt.datetime]) -> None:
    wanted = yielding.wanted(0.01, waited=0.004, now=NOW)
    assert wanted == pytest.approx(0.07 if on_sqlite else 0)


@pytest.mark.parametrize(
    ("took", "expected"),
    [(yielding.WAIT, 20), (yielding.WAIT * 1.25, 16), (1.0, 10), (0.0, 30), (yielding.WAIT / 1.1, 22)],
)
def test_fitting_goes_by_what_the_last_transaction_took(took: float, expected: int, asked: list[dt.datetime]) -> None:
    yielding.pause(took, now=NOW, sleep=lambda seconds: None)
    assert yielding.fitting(20, least=5, most=60) == expected
    assert yielding.fitting(20, least=18, most=21) in (18, 20, 21)


def test_pause_asks_once_for_many_chunks(asked: list[dt.datetime]) -> None:
    for _ in range(50):
        yielding.wanted(0.01, now=NOW)
    assert len(asked) == (1 if on_sqlite else 0)


def test_pause_has_a_limit(asked: list[dt.datetime]) -> None:
    assert yielding.wanted(1.0, now=NOW) == (yielding.LONGEST_PAUSE if on_sqlite else 0)
