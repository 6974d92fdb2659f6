"""The tables of a test with real transactions are emptied, and the planner forgets what it knew about them."""

import pytest
from django.db import connection

from rawsql import planner_statistics
from tests import factories, fast_flush

_KNOWN_ROWS = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND reltuples >= 0"
_COLUMNS = "SELECT count(*) FROM pg_stats WHERE schemaname = 'public'"


def count(sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return int(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
def test_flush_deletes_rows_and_resets_statistics() -> None:
    project = factories.make_project()
    planner_statistics.analyze_everything()
    assert count(_KNOWN_ROWS) > 0
    assert count(_COLUMNS) > 0
    fast_flush._delete_rows(None)
    assert not type(project).objects.exists()
    assert count(_KNOWN_ROWS) == 0
    assert count(_COLUMNS) == 0
