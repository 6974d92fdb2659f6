"""Lock append-only tables: triggers in the database refuse UPDATE, DELETE, and TRUNCATE. Only this module creates these
triggers.

Apps name their tables in `AppConfig.ready`. Every migrate creates missing triggers.
"""

from typing import Any

from django.db import connection

_tables: set[str] = set()

# Row triggers for changes: a statement that touches no row, such as a cascade into an empty table, is permitted.
_LEVELS = {"update": "ROW", "delete": "ROW", "truncate": "STATEMENT"}

_FUNCTION = """CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '% is append-only: % is refused', TG_TABLE_NAME, lower(TG_OP)
USING ERRCODE = 'integrity_constraint_violation'; END $$"""

_TRIGGER = """CREATE TRIGGER "{name}" BEFORE {operation} ON "{table}"
FOR EACH {level} EXECUTE FUNCTION refuse_change()"""


def register_tables(*tables: str) -> None:
    """Declare tables as append-only. Call this in `AppConfig.ready`."""
    _tables.update(tables)


def registered_tables() -> frozenset[str]:
    return frozenset(_tables)


def missing_triggers() -> list[str]:
    """Return the triggers that the database lacks. Empty if every registered table is locked."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal")
        return sorted(required_triggers().keys() - {name for (name,) in cursor.fetchall()})


def required_triggers() -> dict[str, tuple[str, str]]:
    """Return the table and the operation of each trigger by its name."""
    return {f"{table}_refuses_{operation}": (table, operation) for table in _tables for operation in _LEVELS}


def create_triggers(**_signal: Any) -> None:
    """Create every missing trigger on the tables that exist. Handles the signal that follows every migrate."""
    names = missing_triggers()
    if not names:
        return
    tables = connection.introspection.table_names()
    with connection.cursor() as cursor:
        cursor.execute(_FUNCTION)
        for name in names:
            table, operation = required_triggers()[name]
            if table in tables:
                level = _LEVELS[operation]
                cursor.execute(_TRIGGER.format(name=name, table=table, operation=operation, level=level))
