"""Measure the statistics of a million ratings: in memory compared with the `krippendorff` package, on PostgreSQL, and
Dawid–Skene.

The best of several runs counts. Runs of both programs alternate, so that other load affects both.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import krippendorff
import numpy as np
import psycopg

from stats import agreement, label_votes, rating_patterns
from stats.arrays import Ints
from stats.label_votes import LabelVotes

UNITS, PROBLEMS = 500_000, 1_000
_FROM_RATINGS = """
SELECT problem, code & 1023, (code >> 10) & 1023, code >> 20, count(*)
FROM (
  SELECT unit, min(problem) AS problem, sum(CASE rating WHEN -1 THEN 1 WHEN 0 THEN 1024 ELSE 1048576 END)::int AS code
  FROM bench_rating GROUP BY unit  -- in the order of the index: hashing half a million groups takes three times as long
) counted
GROUP BY problem, code
"""


def make_two_ratings(seed: int = 0) -> tuple[Ints, Ints, Ints]:
    """Return units, labels (indexes on the scale) and the problem of each unit, for a million ratings."""
    random = np.random.default_rng(seed)
    truth = random.choice(3, size=UNITS, p=[0.125, 0.075, 0.8])
    labels = [np.where(random.random(UNITS) < 0.85, truth, random.integers(0, 3, UNITS)) for _ in range(2)]
    return np.tile(np.arange(UNITS), 2), np.concatenate(labels), np.arange(UNITS) * PROBLEMS // UNITS


def time_krippendorff(turns: int = 5) -> tuple[float, float, float]:
    """Return seconds for all step statistics, seconds for the package's three alphas, and the largest difference."""
    units, labels, problems = make_two_ratings()
    counts = count_values(units, labels)
    own: list[float] = []
    foreign: list[float] = []
    for _ in range(turns):
        mine = time_call(own, lambda: headline_of(counts, problems))
        theirs = time_call(foreign, lambda: _alphas_of(counts))
    differences = [abs(mine[f"alpha_{name}"].value - theirs[name]) for name in theirs]
    return min(own), min(foreign), max(differences)


def time_dawid_skene(turns: int = 3) -> tuple[float, int]:
    """Return seconds and rounds for a million votes of 500 workers on 333,334 tasks."""
    random = np.random.default_rng(1)
    tasks, workers = np.arange(1_000_000) // 3, random.integers(0, 500, 1_000_000)
    truth, skill = random.integers(0, 3, 333_334), random.uniform(0.5, 0.95, 500)
    guess = random.integers(0, 3, 1_000_000)
    labels = np.where(random.random(1_000_000) < skill[workers], truth[tasks], guess)
    spent: list[float] = []
    for _ in range(turns):
        fit = time_call(spent, lambda: label_votes.fit_votes(LabelVotes(tasks, workers, labels, 3)))
    return min(spent), fit.rounds


def in_database(url: str, turns: int = 5) -> tuple[float, float]:
    """Return seconds for all step statistics from ratings, and the largest difference to those from memory."""
    units, labels, problems = make_two_ratings()
    expected = headline_of(count_values(units, labels), problems)
    spent: list[float] = []
    with psycopg.connect(url) as connection, _tables(connection, units, labels, problems):
        for _ in range(turns):
            found = time_call(spent, lambda: _headline_from(connection, _FROM_RATINGS))
    return min(spent), max(abs(expected[name].value - found[name].value) for name in expected)


def time_call(spent: list[float], work: Callable[[], Any]) -> Any:
    started = time.perf_counter()
    result = work()
    spent.append(time.perf_counter() - started)
    return result


def count_values(units: Ints, labels: Ints) -> Ints:
    """Return the number of ratings of each value, as (units, 3)."""
    return np.bincount(units * 3 + labels, minlength=UNITS * 3).reshape(UNITS, 3)


def headline_of(counts: Ints, problems: Ints) -> Any:
    ones = np.ones(PROBLEMS, dtype=np.int64)
    rows = rating_patterns.RatingPatterns(
        rating_patterns.PROJECT_SCALE, counts, np.ones(len(counts), dtype=np.int64), problems, ones
    )
    return agreement.estimate_step_statistics(rating_patterns.merge_equal_patterns(rows))


def _alphas_of(counts: Ints) -> dict[str, float]:
    values = list(rating_patterns.PROJECT_SCALE)
    return {
        level: krippendorff.alpha(value_counts=counts, value_domain=values, level_of_measurement=level)
        for level in ("nominal", "ordinal", "interval")
    }


def _headline_from(connection: "psycopg.Connection[Any]", query: str) -> Any:
    with connection.transaction(), connection.cursor() as cursor:
        rows: Sequence[tuple[int, ...]] = cursor.execute(query).fetchall()
    return agreement.estimate_step_statistics(
        rating_patterns.patterns_from_rows((row[0], row[1:4], row[4]) for row in rows)
    )


@contextmanager
def _tables(connection: "psycopg.Connection[Any]", units: Ints, labels: Ints, problems: Ints) -> Iterator[None]:
    """Insert the ratings as rows and delete them afterward."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE UNLOGGED TABLE bench_rating (unit int, problem int, rating smallint)")
        with cursor.copy("COPY bench_rating FROM STDIN") as copy:
            for start in range(0, len(units), 100_000):
                part = slice(start, start + 100_000)
                rows = zip(
                    units[part].tolist(), problems[units[part]].tolist(), (labels[part] - 1).tolist(), strict=True
                )
                copy.write("".join(f"{unit}\t{problem}\t{rating}\n" for unit, problem, rating in rows))
        cursor.execute("CREATE INDEX ON bench_rating (unit) INCLUDE (problem, rating)")
        connection.commit()
        connection.autocommit = True
        cursor.execute("VACUUM ANALYZE bench_rating")
        try:
            yield
        finally:
            cursor.execute("DROP TABLE bench_rating")
