"""Plans follow the size of the tables: right after an import, after a restore, and after a growth without ANALYZE.

Rows read are counted, not time. A plan made for empty tables reads all rows of a table for each claim.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection as django_connection
from pytest_django import Settings

import rawsql
from labeling import assignments, queue
from labeling.models import Assignment, Option, Project, QueueEntry, Rater, Step, Trace
from labeling.queue import slots
from rawsql import planner_statistics
from tests import factories
from tests.factories import NOW
from tests.labeling.assignments.clients import WorkPageClient

connection: Any = django_connection  # with attributes of `rawsql`

pytestmark = [
    pytest.mark.fault,  # fills tables, and starts pg_dump and pg_restore
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("real_connections"),
]

N_STEPS = 3
MANY = 3000
# Of one claim, one batch of ratings and one submit. Reading one large table once would be thousands.
MOST_ROWS = 1500
ROWS_READ = """
SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint FROM pg_stat_user_tables"""


@pytest.fixture
def project(settings: Settings, tmp_path: Path) -> Project:
    settings.DATA_DIR = tmp_path
    return factories.make_project("plans", reserve_problem_share=0, overlap=1)


def work_once(rater: Rater) -> None:
    """Claim a trace, rate it, and submit it, over the connection that is already open."""
    claim = queue.claim_trace(rater_id=rater.pk, now=NOW)
    queue.open_assignment(assignment_id=claim.assignment_id, rater_id=rater.pk, now=NOW)
    client = WorkPageClient(Assignment.objects.get(pk=claim.assignment_id))
    client.rate([1] * N_STEPS)
    assignments.submit(**client.place, now=NOW, by=rater.user)


def count_rows_read(act: Callable[[], None]) -> int:
    before = _rows_read()
    act()
    return _rows_read() - before


def _rows_read() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(ROWS_READ)
        return int(cursor.fetchone()[0])


def import_file(project: Project, folder: Path, n: int) -> None:
    path = folder / f"{n}.jsonl"
    steps = [f"step {at}" for at in range(N_STEPS)]
    path.write_text("".join(json.dumps({"problem": f"What is {at}?", "steps": steps}) + "\n" for at in range(n)))
    call_command("import_traces", str(path), "--project", project.slug, verbosity=0)


def grow_without_analyze(project: Project, n: int) -> None:
    """Add traces as another program would, without ANALYZE."""
    problem, lane = factories.make_problem(project), slots.ensure_lane(project_id=project.pk, arm="uniform")
    traces = Trace.objects.bulk_create(
        Trace(project=project, problem=problem, digest=f"{n} grown {at}", n_steps=N_STEPS, added_at=NOW)
        for at in range(n)
    )
    steps = Step.objects.bulk_create(
        Step(trace=trace, position=position) for trace in traces for position in range(N_STEPS)
    )
    Option.objects.bulk_create(Option(step=step, position=0, text="x") for step in steps)
    QueueEntry.objects.bulk_create(
        QueueEntry(lane=lane, trace=trace, key=trace.pk, slots=1, slots_left=1) for trace in traces
    )


def test_work_is_cheap_right_after_an_import(project: Project, tmp_path: Path) -> None:
    rater = factories.make_rater(project)
    grow_without_analyze(project, 5)
    for _ in range(3):
        work_once(rater)  # statements are planned for nearly empty tables
    import_file(project, tmp_path, MANY)
    assert count_rows_read(lambda: work_once(rater)) < MOST_ROWS


def test_work_is_cheap_after_a_tenfold_growth_under_an_open_connection(project: Project) -> None:
    rater = factories.make_rater(project)
    grow_without_analyze(project, 5)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")  # so that PostgreSQL knows the tables as small
    for _ in range(3):
        work_once(rater)
    open_connection = connection.connection
    grow_without_analyze(project, MANY)
    planner_statistics.analyze_changed_tables(growth=planner_statistics.GROWTH)  # as the beat does each minute
    assert count_rows_read(lambda: work_once(rater)) < MOST_ROWS
    assert connection.connection is open_connection


def test_work_is_cheap_right_after_a_restore(project: Project, tmp_path: Path) -> None:
    rater = factories.make_rater(project)
    grow_without_analyze(project, MANY)
    file = tmp_path / "plans.backup"
    call_command("backup", str(file), verbosity=0)
    for _ in range(3):
        work_once(rater)
    call_command("restore", str(file), "--yes", verbosity=0)
    rater = Rater.objects.get(pk=rater.pk)
    assert count_rows_read(lambda: work_once(rater)) < MOST_ROWS


def test_a_connection_plans_again_after_some_seconds(project: Project) -> None:
    statement = "SELECT id FROM labeling_trace WHERE ref = %(ref)s"
    rawsql.fetch_rows(statement, {"ref": "x"})
    planned_at = connection.connection.planned_at
    rawsql.fetch_rows(statement, {"ref": "x"})
    assert connection.connection.planned_at == planned_at
    connection.connection.planned_at -= rawsql.PLAN_AGE
    rawsql.fetch_rows(statement, {"ref": "x"})
    assert connection.connection.planned_at >= planned_at
