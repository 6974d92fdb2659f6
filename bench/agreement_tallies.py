"""Measure the headline of a project from its tallies, the rows that submissions update: a million ratings of fifty
thousand traces, with the code of the dashboard. Uses its own database on the server of DATABASE_URL."""

import datetime as dt
import time
from typing import Any, NamedTuple

import numpy as np

from bench import agreement_speed, databases
from stats.arrays import Ints

STEPS = 10  # per trace, each rated by both raters
_TRACES = agreement_speed.UNITS // STEPS
_NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


class TallyTimes(NamedTuple):
    headline: float  # seconds for all step statistics, from the query to intervals
    everything: float  # seconds for all statistics of the project
    apart: float  # largest difference to the statistics from memory


def measure(turns: int = 5) -> TallyTimes:
    units, labels, problems = agreement_speed.make_two_ratings()
    expected = agreement_speed.headline_of(agreement_speed.count_values(units, labels), problems)
    with databases.temporary_databases(["tallies"]) as made:
        databases.use_database(made["tallies"])
        project_id = _fill(labels.reshape(2, _TRACES, STEPS))
        from labeling.quality import project_stats, tallies
        from stats import agreement

        def from_tallies() -> Any:
            return agreement.estimate_step_statistics(tallies.load_tally_arrays(project_id=project_id).all_steps())

        spent: list[float] = []
        for _ in range(turns):
            found = agreement_speed.time_call(spent, from_tallies)
        began = time.perf_counter()
        project_stats.build_stats_content(project_id=project_id, now=_NOW)
        everything = time.perf_counter() - began
        databases.close_connections()
    apart = max(abs(expected[name].value - found[name].value) for name in expected)
    return TallyTimes(min(spent), everything, apart)


def _fill(ratings: Ints) -> int:
    """Insert tallies as submissions would have counted them. Other referenced rows are not created."""
    from django.db import connection

    from labeling.models import AgreementTally, Problem, Project

    project = Project.objects.create(slug="bench", name="bench", created_at=_NOW)
    problems = Problem.objects.bulk_create(
        Problem(project=project, text=f"{n}?", digest=str(n), normal_digest=str(n), domain=f"domain {n % 6}")
        for n in range(agreement_speed.PROBLEMS)
    )
    rows = _rows(ratings, project.pk, [problem.pk for problem in problems])
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
    AgreementTally.objects.bulk_create(rows, batch_size=2000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return project.pk


def _rows(ratings: Ints, project_id: int, problems: list[int]) -> Any:
    from labeling.models import AgreementTally
    from labeling.quality.tallies import COUNTERS

    low, high = ratings.min(axis=0), ratings.max(axis=0)
    place = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])[low, high]  # index of the counter among the six of pairs
    counts = np.stack([(place == n).sum(axis=1) for n in range(6)], axis=1)
    ends = [np.where((each == 0).any(axis=1), (each == 0).argmax(axis=1), STEPS) for each in ratings]
    raters = np.random.default_rng(0).integers(1, 21, (_TRACES, 2))
    for n in range(_TRACES):
        first, second = int(raters[n, 0]), int(raters[n, 1]) + 20
        yield AgreementTally(
            trace_id=n + 1,
            step_kind="reasoning",
            project_id=project_id,
            problem_id=problems[n * len(problems) // _TRACES],
            first_id=2 * n + 1,
            second_id=2 * n + 2,
            first_rater_id=first,
            second_rater_id=second,
            n_steps=STEPS,
            first_end=int(ends[0][n]),
            second_end=int(ends[1][n]),
            is_first_censored=False,
            is_second_censored=False,
            **dict(zip(COUNTERS[3:], counts[n].tolist(), strict=True)),
        )
