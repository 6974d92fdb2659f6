"""Fill a database for `bench.queue`: a project with many open traces, and raters who have finished many. SQL statements
create millions of rows in the database."""

import datetime as dt
from typing import Any, NamedTuple

from django.db import connection

from labeling.models import Lane, Problem, Project, Rater
from labeling.models.queue import SamplingSource

START = dt.datetime(2026, 1, 5, 9, 0, tzinfo=dt.UTC)
RATERS, OVERLAP, DONE = 16, 3, 5_000
GOLD, SCREENING, RETURNED = 500, 20, 20
# Finished traces have keys above all open ones.
HIGH = 9_000_000_000_000_000


class FilledQueue(NamedTuple):
    project_id: int
    raters: list[int]
    policy_lane: int
    reached: int  # the key of the raters' cursors in the policy lane


def fill_database(n_open: int) -> FilledQueue:
    project = Project.objects.create(
        slug="bench", name="bench", created_at=START, overlap=OVERLAP, reserve_share=0.05, uniform_share=0.2
    )
    raters = [_rater(project, number).pk for number in range(RATERS)]
    lanes = {arm: Lane.objects.create(project=project, arm=arm).pk for arm in SamplingSource.values}
    problem = Problem.objects.create(project=project, text="1 + 1?", digest="p", normal_digest="p")
    n_done = RATERS * DONE // OVERLAP
    last = n_done + n_open
    _run(_TRACES, 1, last + GOLD + SCREENING, project.pk, problem.pk, _timestamp_parameter(START))
    _run(_DRAWS, 1, last, project.pk, last, last, _timestamp_parameter(START))
    of_lane = [lanes[SamplingSource.RESERVE], lanes[SamplingSource.UNIFORM], lanes[SamplingSource.POLICY]]
    _run(_ENTRIES, 1, last, *of_lane, n_done, HIGH, OVERLAP, n_done, OVERLAP)
    _run(_KNOWN, last + 1, last + GOLD, lanes[SamplingSource.GOLD], 50, 50)
    _run(_KNOWN, last + GOLD + 1, last + GOLD + SCREENING, lanes[SamplingSource.SCREENING], 50, 50)
    _run(_KNOWN, 1, RETURNED, lanes[SamplingSource.TOP_UP], 0, 1)
    for place in range(OVERLAP):
        _run(_DONE, 1, n_done, project.pk, raters[0], place, RATERS, *of_lane, HIGH, *[_timestamp_parameter(START)] * 4)
    _tidy()
    return FilledQueue(project.pk, raters, lanes[SamplingSource.POLICY], HIGH - n_done)


def _rater(project: Project, number: int) -> Rater:
    return Rater.objects.create(project=project, kind="imported", labeler=f"rater {number}", added_at=START)


def _run(sql: str, *parameters: str | int) -> None:
    seconds = "%s + n * interval '1 second'"
    with connection.cursor() as cursor:
        cursor.execute(sql.replace("AFTER_N_SECONDS", seconds), parameters)


def _timestamp_parameter(moment: dt.datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(moment)


def _tidy() -> None:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


_NUMBERS = "WITH RECURSIVE numbers(n) AS (SELECT %s UNION ALL SELECT n + 1 FROM numbers WHERE n < %s) "
_TRACES = (
    "INSERT INTO labeling_trace (id, project_id, problem_id, digest, kind, n_steps, outcome_by, outcome_grader,"
    " added_at, withdrawn_reason, ref, metadata) "
    + _NUMBERS
    + "SELECT n, %s, %s, CAST(n AS text), 'pregenerated', 8, '', '', %s, '', '', '{}' FROM numbers"
)
_DRAWS = (
    "INSERT INTO labeling_tracedraw (id, project_id, batch, rank, trace_id, arm, q, prm, pool_size, n_left, drawn_at) "
    + _NUMBERS
    + "SELECT n, %s, 1, n, n, 'policy', 0.5, '', %s, %s, %s FROM numbers"
)
_LANE = "CASE WHEN n %% 20 = 0 THEN %s WHEN n %% 20 < 5 THEN %s ELSE %s END"
# Open entries are in permuted order, not in insertion order.
_ENTRIES = (
    "INSERT INTO labeling_queueentry (trace_id, lane_id, draw_id, key, slots, slots_left) "
    + _NUMBERS
    + f"SELECT n, {_LANE}, n, CASE WHEN n <= %s THEN %s - n ELSE n * 2654435761 %% 4294967296 END, %s,"
    " CASE WHEN n <= %s THEN 0 ELSE %s END FROM numbers"
)
_KNOWN = (
    "INSERT INTO labeling_queueentry (trace_id, lane_id, key, slots, slots_left) "
    + _NUMBERS
    + "SELECT n, %s, -n, %s, %s FROM numbers"
)
_DONE = (
    "INSERT INTO labeling_assignment (trace_id, project_id, rater_id, lane_id, lane_key, held_at, opened_at,"
    " lease_ends_at, submitted_at, purpose, attempt, origin, population, state, holds_slot, ended_reason,"
    " finish_reason, is_assisted, revision, submitted_revision, version) "
    + _NUMBERS
    + f"SELECT n, %s, %s + (n + %s) %% %s, {_LANE}, %s - n, AFTER_N_SECONDS, AFTER_N_SECONDS, AFTER_N_SECONDS,"
    " AFTER_N_SECONDS, 'work', 1, 'here', 'scheduled', 'submitted', true, '', 'solution', false, 1, 1, 1 FROM numbers"
)
