"""How the tables are emptied after a test with real transactions: by deleting what is there.

Django's own way truncates every table and makes all permissions and content types anew, which takes many times as long
as most of those tests.
"""

from typing import Any

from django.db import connection
from django.test import TransactionTestCase

# What the migrations and their signals have filled, and no test changes.
KEPT_TABLES = frozenset({"django_migrations", "django_content_type", "auth_permission"})


def install() -> None:
    """From now on, for every test with real transactions."""
    TransactionTestCase._fixture_teardown = _delete_rows  # type: ignore[attr-defined]  # has no other way in


def _delete_rows(_: Any) -> None:
    """Delete without checking foreign keys and append-only locks: nothing is left that could break a rule."""
    filled = _filled_tables()
    with connection.cursor() as cursor:
        deletions = "".join(f'DELETE FROM "{table}";' for table in filled)
        cursor.execute(f"SET session_replication_role = replica; {deletions} RESET session_replication_role")


def _filled_tables() -> list[str]:
    tables = [table for table in connection.introspection.table_names() if table not in KEPT_TABLES]
    looks = " UNION ALL ".join(f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM \"{table}\")" for table in tables)
    with connection.cursor() as cursor:
        cursor.execute(looks)
        return [table for (table,) in cursor.fetchall()]
