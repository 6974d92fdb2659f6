"""Fill a database for `bench.project_stats`: a project of traces, all labeled twice and settled over some months.

SQL statements create millions of rows in the database. Rows that statistics do not read (texts, draws, queue) are left
out, and so are foreign keys."""

import datetime as dt
from typing import Any

from django.db import connection

from labeling.models import Problem, Project, Rater

START = dt.datetime(2026, 1, 5, 9, 0, tzinfo=dt.UTC)
RATERS, TRACES_A_PROBLEM, DAYS, STEPS = 40, 10, 200, 8
_PROBLEMS_AT_ONCE = 20_000
_WITHOUT_FOREIGN_KEYS = "SET session_replication_role = replica"


def fill_database(n_traces: int) -> int:
    """Return the id of a filled project. Every tenth trace is contested, every fifth has an error in step 4."""
    project = Project.objects.create(slug="bench", name="bench", created_at=START, overlap=2)
    raters = Rater.objects.bulk_create(
        Rater(project=project, kind="member", labeler=f"rater {n}", added_at=START) for n in range(RATERS)
    )
    Problem.objects.bulk_create(
        (_problem(project, n) for n in range(max(1, n_traces // TRACES_A_PROBLEM))), batch_size=_PROBLEMS_AT_ONCE
    )
    first_problem = Problem.objects.order_by("pk").values_list("pk", flat=True)[0]
    at = {
        "n": n_traces,
        "project": project.pk,
        "rater": raters[0].pk,
        "problem": first_problem,
        "start": START,
    }
    with connection.cursor() as cursor:
        cursor.execute(_WITHOUT_FOREIGN_KEYS)
    for sql in (_TRACES, _SETTLEMENTS, _CONSENSUS, _REPORTS, _ASSIGNMENTS, _SUBMISSIONS, _TALLIES):
        _run(sql, at)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return project.pk


def _problem(project: Project, n: int) -> Problem:
    return Problem(project=project, text="1 + 1?", digest=str(n), normal_digest=str(n), domain=f"domain {n % 6}")


def _run(sql: str, at: dict[str, Any]) -> None:
    day = f"%(start)s::timestamptz + (n * {DAYS} / %(n)s) * interval '1 day'"
    with connection.cursor() as cursor:
        cursor.execute(sql.replace("ON_ITS_DAY", day), at)


_NUMBERS = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %(n)s) "
_BOTH = _NUMBERS + ", place(p) AS (SELECT 0 UNION ALL SELECT 1) "
_RATER = f"%(rater)s + (n + 7 * p) %% {RATERS}"
_END = "CASE WHEN n %% 5 = 0 THEN 3 END"
_TRACES = (
    "INSERT INTO labeling_trace (id, project_id, problem_id, digest, kind, n_steps, outcome_by, outcome_grader,"
    " added_at, withdrawn_reason, ref, metadata) "
    + _NUMBERS
    + f"SELECT n, %(project)s, %(problem)s + (n - 1) / {TRACES_A_PROBLEM}, CAST(n AS text), 'pregenerated', {STEPS},"
    " '', '', %(start)s, '', '', '{}' FROM numbers"
)
_SETTLEMENTS = (
    "INSERT INTO labeling_settlement (trace_id, project_id, state, reason, n_readings, n_votes, consensus_revision,"
    " changed_at, is_due) "
    + _NUMBERS
    + "SELECT n, %(project)s, CASE WHEN n %% 10 = 1 THEN 'contested' ELSE 'settled' END,"
    " CASE WHEN n %% 10 = 1 THEN 'differ_at_limit' ELSE 'all_agree' END, 2, 2, CASE WHEN n %% 10 = 1 THEN 0 ELSE 1 END,"
    " ON_ITS_DAY, false FROM numbers"
)
_CONSENSUS = (
    "INSERT INTO labeling_consensus (trace_id, project_id, revision, first_error, source, confidence, n_votes,"
    " assisted_votes, labels, note, made_at) "
    + _NUMBERS
    + f"SELECT n, %(project)s, 1, {_END}, 'raters', 1.0, 2, '[]', '[]', '', ON_ITS_DAY FROM numbers WHERE n %% 10 <> 1"
)
_REPORTS = (
    "INSERT INTO labeling_firsterrorreport (assignment_id, trace_id, project_id, rater_id, revision, first_error,"
    " n_passed, is_censored, has_bad_problem) "
    + _BOTH
    + f"SELECT 2 * n + p, n, %(project)s, {_RATER}, 1, {_END}, 3, false, false FROM numbers, place"
)
_ASSIGNMENTS = (
    "INSERT INTO labeling_assignment (id, trace_id, project_id, rater_id, held_at, opened_at, lease_ends_at,"
    " submitted_at, purpose, attempt, origin, population, state, holds_slot, ended_reason, finish_reason, is_assisted,"
    " revision, submitted_revision, version) "
    + _BOTH
    + f"SELECT 2 * n + p, n, %(project)s, {_RATER}, ON_ITS_DAY, ON_ITS_DAY, ON_ITS_DAY, ON_ITS_DAY, 'work', 1, 'here',"
    " 'scheduled', 'submitted', true, '', 'solution', false, 1, 1, 1 FROM numbers, place"
)
_SUBMISSIONS = (
    "INSERT INTO labeling_submission (project_id, assignment_id, revision, submitted_at, finish_reason, finish_note,"
    " total_ms) " + _BOTH + "SELECT %(project)s, 2 * n + p, 1, ON_ITS_DAY, 'solution', '', 40000 FROM numbers, place"
)
# Problems differ by pseudorandom digits from multiplication modulo a prime. Both raters rated 8 steps; the second
# rater, one of 39 others, reports the error at another step in three traces of ten.
_DRAWN = "((CAST(n AS bigint) * {} %% 2147483647) %% 65537 %% {})"
_FIRST_END = f"{_DRAWN.format(482717919, 12)}"
_SECOND_END = f"CASE WHEN {_DRAWN.format(406927919, 10)} < 7 THEN {_FIRST_END} ELSE {_DRAWN.format(303237919, 12)} END"
_CLIPPED = f"CASE WHEN {{0}} < {STEPS} THEN {{0}} ELSE {STEPS} END"
_KIND = f"CASE WHEN {{0}} < {STEPS} THEN 'reasoning' ELSE '' END"
_TALLIES = (
    "INSERT INTO labeling_agreementtally (trace_id, step_kind, is_alternative, project_id, problem_id, generation,"
    " first_id, second_id, first_rater_id, second_rater_id, has_two_guidelines, n_steps, first_end, second_end,"
    " is_first_censored, is_second_censored, first_kind, second_kind, negative, neutral, positive, negative_negative,"
    " negative_neutral, negative_positive, neutral_neutral, neutral_positive, positive_positive) "
    + _NUMBERS
    + f", ended AS (SELECT n, {_FIRST_END} AS one, {_SECOND_END} AS two FROM numbers) "
    + f"SELECT n, 'reasoning', false, %(project)s, %(problem)s + (n - 1) / {TRACES_A_PROBLEM}, 0, 2 * n, 2 * n + 1,"
    f" %(rater)s + n %% {RATERS}, %(rater)s + (n + 1 + {_DRAWN.format(696217919, RATERS - 1)}) %% {RATERS},"
    f" false, {STEPS},"
    f" {_CLIPPED.format('one')}, {_CLIPPED.format('two')}, false, false,"
    f" {_KIND.format('one')}, {_KIND.format('two')},"
    f" {_DRAWN.format(123457919, 2)}, 0, {_DRAWN.format(222227919, 3)}, {_DRAWN.format(333317919, 2)}, 0,"
    f" {_DRAWN.format(444497919, 2)}, {_DRAWN.format(555477919, 2)}, {_DRAWN.format(168077919, 2)},"
    f" {_DRAWN.format(393737919, 4)} FROM ended"
)
