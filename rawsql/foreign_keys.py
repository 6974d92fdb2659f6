"""Check foreign keys once per statement where PostgreSQL would check each row.

PostgreSQL looks for references to each deleted row, once per constraint, and for the parent of each new row. In an undo
that was 78 lookups per trace and nine tenths of the time (measured). Here the triggers of the constraints are off for
one statement, and one query per constraint checks all of its rows:

- A deletion is checked after it, by a query with a new snapshot. A transaction that adds a reference locks the parent
  first. So either the deletion waited for it and the query sees its row, or it waits for the deletion and is refused.
- New rows need no check if the same transaction inserted their parents.

Only roles that may set `session_replication_role` can turn the triggers off: that of the embedded database, superusers,
and roles with `GRANT SET ON PARAMETER`. For all others, PostgreSQL checks each row as usual.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from django.db import IntegrityError, connection

import rawsql
from rawsql import Parameters


class ReferringColumn(NamedTuple):
    """A column with a foreign key. `is_simple`: it refers to one column, and the constraint refuses the deletion."""

    table: str
    column: str
    constraint: str
    is_simple: bool


_REFERRING_COLUMNS = """
SELECT quote_ident(child.relname), quote_ident(attname), conname, confdeltype = 'a' AND cardinality(conkey) = 1
FROM pg_constraint
JOIN pg_class child ON child.oid = conrelid
JOIN pg_attribute ON attrelid = conrelid AND attnum = conkey[1]
WHERE contype = 'f' AND confrelid = %(table)s::regclass
ORDER BY 1, 2"""
# Own triggers, such as those of append-only tables, must run.
_MAY_SKIP = """
SELECT has_parameter_privilege('session_replication_role', 'SET')
  AND NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = %(table)s::regclass AND NOT tgisinternal)"""
_FIRST_VERSION = 150000  # with privileges on parameters


def may_skip_row_checks(table: str) -> bool:
    """Return whether this connection may turn off the triggers of a table, and whether all are of foreign keys."""
    if connection.pg_version < _FIRST_VERSION:  # type: ignore[attr-defined]  # of PostgreSQL
        return False
    ((may_skip,),) = rawsql.fetch_rows(_MAY_SKIP, {"table": table})
    return bool(may_skip)


@contextmanager
def row_checks_skipped() -> Iterator[None]:
    """Turn off triggers in this transaction. The caller checks foreign keys, and that `may_skip_row_checks`."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        yield  # an error ends the transaction and with it the setting
        cursor.execute("SET LOCAL session_replication_role = origin")


def delete_rows(table: str, statement: str, parameters: Parameters) -> list[int]:
    """Run a DELETE of rows of a table that returns their ids, inside the caller's transaction. Raises IntegrityError if
    other rows refer to the deleted ones."""
    columns = _list_referring_columns(table)
    if not all(column.is_simple for column in columns) or not may_skip_row_checks(table):
        return [pk for (pk,) in rawsql.fetch_rows(statement, parameters)]
    with row_checks_skipped():
        ids = [pk for (pk,) in rawsql.fetch_rows(statement, parameters)]
    if ids and columns:
        _refuse_references(columns, ids)
    return ids


def _list_referring_columns(table: str) -> list[ReferringColumn]:
    return [ReferringColumn(*row) for row in rawsql.fetch_rows(_REFERRING_COLUMNS, {"table": table})]


def _refuse_references(columns: list[ReferringColumn], ids: list[int]) -> None:
    """Raise IntegrityError if a row refers to one of these. The ids are part of the text, so that PostgreSQL plans for
    their number."""
    references = " UNION ALL ".join(
        f"SELECT '{each.constraint}' WHERE EXISTS "  # noqa: S608  names from the catalog
        f"(SELECT FROM gone JOIN {each.table} child ON child.{each.column} = gone.id)"
        for each in columns
    )
    given = "{" + ",".join(map(str, ids)) + "}"
    with connection.cursor() as cursor:
        cursor.execute(f"WITH gone (id) AS (SELECT unnest(%s::bigint[])) {references}", [given])
        if found := cursor.fetchone():
            raise IntegrityError(f"rows to delete are still referenced: {found[0]}")
