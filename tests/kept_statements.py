"""Keep prepared statements when a test's transaction is rolled back.

psycopg forgets them after each rollback, so every test planned the same statements again, the largest in 2 ms. Only a
table that was created in the transaction would need it, and PostgreSQL itself plans a statement again when a table has
changed. A plan for almost empty tables can take minutes on full ones. The product runs ANALYZE after bulk writes, which
does nothing inside a test's transaction, so statements are forgotten here with every few hundred new rows, and when
the rows of a module are made or gone (`module_rows`).
"""

import re
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from django.db import connection
from psycopg._preparing import PrepareManager

import rawsql

_changes_tables = re.compile(rb"(?:DROP|ALTER|DISCARD ALL|DEALLOCATE ALL)\b").match
_inserted = re.compile(rb"INSERT 0 (\d+)").match
_clear: Callable[[Any], bool] = PrepareManager.clear
_MANY_ROWS = 500
_new_rows: WeakKeyDictionary[Any, int] = WeakKeyDictionary()  # by manager, since it forgot its statements


def install() -> None:
    """Patch the connections of this process. There is no public setting."""
    manager: Any = PrepareManager
    manager.clear = _keep  # a rollback of the connection calls it
    manager._should_discard = _should_discard
    for table in (rawsql.BulkTable, rawsql.BinaryTable):
        _patch_insert(table)


def _keep(_: PrepareManager) -> bool:
    return False


def _should_discard(manager: PrepareManager, _: Any, results: Sequence[Any]) -> bool:
    tags = [each.command_status or b"" for each in results]
    n_rows = sum(int(match[1]) for match in map(_inserted, tags) if match)
    return (_counts_many(manager, n_rows) or any(map(_changes_tables, tags))) and _clear(manager)


def _counts_many(manager: PrepareManager, n_rows: int) -> bool:
    """Count new rows, and return whether there are so many that plans made before them may be bad."""
    total = _new_rows.get(manager, 0) + n_rows
    _new_rows[manager] = 0 if total >= _MANY_ROWS else total
    return total >= _MANY_ROWS


def _patch_insert(table_type: Any) -> None:
    insert = table_type.insert

    def insert_and_forget(table: Any, rows: Sequence[Any]) -> None:
        insert(table, rows)
        if rows and connection.in_atomic_block and _counts_many(connection.connection._prepared, len(rows)):
            forget_statements()

    table_type.insert = insert_and_forget


def forget_statements() -> None:
    """Let the connection prepare every statement again."""
    if connection.connection is None:
        return
    _clear(connection.connection._prepared)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")  # sends what _clear has noted, before the next statement is prepared
