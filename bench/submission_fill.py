"""Fill the database of `bench.submission` and print the sessions of its raters."""

import datetime as dt
import json
import os
import sys
from typing import Any

STEPS = 12
SHARE_DONE = 20_000  # traces with steps: more than a run reaches


def main() -> None:
    traces, raters = int(sys.argv[1]), int(sys.argv[2])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    project = make_project()
    make_traces(project, traces, reached=min(traces, SHARE_DONE))
    sessions = [create_session(project, number) for number in range(raters)]
    analyze_tables()
    print(json.dumps({"sessions": sessions}))


def make_project() -> Any:
    from tests import factories

    return factories.make_project("bench", overlap=16, overlap_limit=16, gold_share=0.1, reserve_share=0.05)


def make_traces(project: Any, count: int, *, reached: int) -> None:
    """Create millions of rows with SQL statements in the database."""
    from django.db import connection

    from labeling.models import Problem
    from tests import factories

    lane = factories.make_lane(project, "uniform")
    problem = Problem.objects.create(project=project, text="What is 1 + 1?", digest="p", normal_digest="p")
    now = connection.ops.adapt_datetimefield_value(dt.datetime.now(dt.UTC))
    with connection.cursor() as cursor:
        cursor.execute(_TRACES, [count, project.pk, problem.pk, STEPS, now])
        cursor.execute(_STEPS, [reached * STEPS, STEPS, STEPS])
        cursor.execute(_OPTIONS, [reached * STEPS])
        cursor.execute(_ENTRIES, [count, lane.pk])
        for table in ("labeling_trace", "labeling_step", "labeling_option"):
            cursor.execute(_GO_ON.format(table=table))


# Move the id sequences past the rows above, for an import.
_GO_ON = "SELECT setval(pg_get_serial_sequence('{table}', 'id'), MAX(id)) FROM {table}"
_NUMBERS = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %s) "
_TRACES = (
    "INSERT INTO labeling_trace (id, project_id, problem_id, digest, ref, kind, n_steps, outcome_by, outcome_grader,"
    " added_at, withdrawn_reason, metadata) "
    + _NUMBERS
    + "SELECT n, %s, %s, CAST(n AS text), '', 'pregenerated', %s, '', '', %s, '', '{}' FROM numbers"
)
_STEPS = (
    "INSERT INTO labeling_step (id, trace_id, position, kind, is_rateable, separator, agent) "
    + _NUMBERS
    + "SELECT n, (n - 1) / %s + 1, (n - 1) %% %s, 'reasoning', true, '', '' FROM numbers"
)
_OPTIONS = (
    "INSERT INTO labeling_option (id, step_id, position, origin, text) "
    + _NUMBERS
    + "SELECT n, n, 0, 'model', 'So $x = ' || n || '$ and $x + 1$ is the next; both sides stay equal.' FROM numbers"
)
# Each entry has slots for all raters, so that the queue keeps its length.
_ENTRIES = (
    "INSERT INTO labeling_queueentry (lane_id, trace_id, key, slots, slots_left) "
    + _NUMBERS
    + "SELECT %s, n, -n, 16, 16 FROM numbers"
)


def create_session(project: Any, number: int, *, role: str = "annotator") -> str:
    from django.test import Client

    from people.models import Membership
    from tests import factories

    user = factories.make_user(f"rater-{number}")
    factories.make_rater(project, user)
    Membership.objects.create(project=project, user=user, role=role, joined_at=dt.datetime.now(dt.UTC))
    client = Client()
    client.force_login(user)
    return client.cookies["sessionid"].value


def analyze_tables() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


if __name__ == "__main__":
    main()
