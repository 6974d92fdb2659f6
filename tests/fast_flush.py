"""Empty the tables after a test with real transactions by deleting their rows.

Django truncates every table and creates all permissions and content types again, which takes many times as long as most
of these tests.

It also resets the planner's statistics. ANALYZE of a table whose rows were deleted stores that its pages have no rows,
and the planner would expect one row from any number of rows that later tests insert: a join could take hours.
"""

from typing import Any

from django.db import connection
from django.test import TransactionTestCase

# Filled by migrations and their signals; no test changes them.
KEPT_TABLES = frozenset({"django_migrations", "django_content_type", "auth_permission"})


_RESET_STATISTICS = """
    DELETE FROM pg_statistic USING pg_class WHERE starelid = pg_class.oid AND relnamespace = 'public'::regnamespace;
    UPDATE pg_class SET relpages = 0, reltuples = -1 WHERE relnamespace = 'public'::regnamespace AND reltuples >= 0
"""


def install() -> None:
    """Replace the teardown of all tests with real transactions."""
    TransactionTestCase._fixture_teardown = _delete_rows  # type: ignore[attr-defined]  # there is no public hook


def _delete_rows(_: Any) -> None:
    """Delete all rows without checking foreign keys and append-only triggers."""
    filled = _filled_tables()
    with connection.cursor() as cursor:
        deletions = "".join(f'DELETE FROM "{table}";' for table in filled)
        cursor.execute(f"SET session_replication_role = replica; {deletions} RESET session_replication_role")
        cursor.execute(_RESET_STATISTICS)


def _filled_tables() -> list[str]:
    tables = [table for table in connection.introspection.table_names() if table not in KEPT_TABLES]
    looks = " UNION ALL ".join(f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM \"{table}\")" for table in tables)
    with connection.cursor() as cursor:
        cursor.execute(looks)
        return [table for (table,) in cursor.fetchall()]
