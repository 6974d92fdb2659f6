"""Tables that the database itself keeps from being changed: UPDATE, DELETE and (on PostgreSQL) TRUNCATE are refused by
triggers. This module alone makes and drops those triggers.

Rooms name their tables in `AppConfig.ready`. The triggers are made after every migrate, because Django rebuilds a
SQLite table to alter a column and silently loses them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

_tables: set[str] = set()

_OPERATIONS = {"sqlite": ("update", "delete"), "postgresql": ("update", "delete", "truncate")}

_SQLITE = """CREATE TRIGGER "{name}" BEFORE {operation} ON "{table}"
BEGIN SELECT RAISE(ABORT, '{table} is append-only: {operation} is refused'); END"""

_POSTGRESQL_FUNCTION = """CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '% is append-only: % is refused', TG_TABLE_NAME, lower(TG_OP)
USING ERRCODE = 'integrity_constraint_violation'; END $$"""

_POSTGRESQL = """CREATE TRIGGER "{name}" BEFORE {operation} ON "{table}"
FOR EACH {level} EXECUTE FUNCTION refuse_change()"""

_PRESENT = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal",
}


def register(*tables: str) -> None:
    """Name tables whose rows are only ever added. For `AppConfig.ready`."""
    _tables.update(tables)


def registered() -> frozenset[str]:
    return frozenset(_tables)


def missing(using: str = DEFAULT_DB_ALIAS) -> list[str]:
    """The triggers that should stand in the database and do not. Empty when every registered table is locked."""
    connection = connections[using]
    return sorted(set(_wanted(connection)) - _present(connection))


def lock(using: str = DEFAULT_DB_ALIAS) -> None:
    """Make every missing trigger on the tables that exist."""
    connection = connections[using]
    wanted = _wanted(connection)
    names = set(missing(using))
    tables = set(connection.introspection.table_names()) if names else set()
    with connection.cursor() as cursor:
        if names and connection.vendor == "postgresql":
            cursor.execute(_POSTGRESQL_FUNCTION)
        for name in sorted(names):
            table, operation = wanted[name]
            if table in tables:
                cursor.execute(_statement(connection, name, table, operation))


def unlock(using: str = DEFAULT_DB_ALIAS) -> None:
    """Drop the triggers. Only tests do this, to empty their tables; the next migrate or flush makes them again."""
    connection = connections[using]
    wanted = _wanted(connection)
    with connection.cursor() as cursor:
        for name in sorted(_present(connection) & set(wanted)):
            on_table = f' ON "{wanted[name][0]}"' if connection.vendor == "postgresql" else ""
            cursor.execute(f'DROP TRIGGER "{name}"{on_table}')


@contextmanager
def lifted(using: str = DEFAULT_DB_ALIAS) -> Iterator[None]:
    """Without the locks for as long as the block lasts. Only for tests that change a row to see what comes of it."""
    unlock(using)
    try:
        yield
    finally:
        lock(using)


def on_migrated(*, using: str, **_: Any) -> None:
    lock(using)


def _wanted(connection: BaseDatabaseWrapper) -> dict[str, tuple[str, str]]:
    return {
        f"{table}_refuses_{operation}": (table, operation)
        for table in sorted(_tables)
        for operation in _OPERATIONS[connection.vendor]
    }


def _present(connection: BaseDatabaseWrapper) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(_PRESENT[connection.vendor])
        return {name for (name,) in cursor.fetchall()}


def _statement(connection: BaseDatabaseWrapper, name: str, table: str, operation: str) -> str:
    template = _SQLITE if connection.vendor == "sqlite" else _POSTGRESQL
    # Row triggers for changes: a statement that touches no row, such as a cascade into an empty table, may pass.
    level = "STATEMENT" if operation == "truncate" else "ROW"
    return template.format(name=name, table=table, operation=operation, level=level)
