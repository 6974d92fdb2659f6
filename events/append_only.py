"""Lock append-only tables: triggers in the database refuse UPDATE, DELETE, and TRUNCATE. Only this module creates these
triggers.

Apps name their tables in `AppConfig.ready`. Every migrate creates missing triggers.

There is one exception. While a logged erasure of a person runs, texts in the columns that an app has named may be
replaced by texts that contain the tombstone. All other columns of the row must stay as they are.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction

TOMBSTONE = "[erased]"  # what remains of a text of an erased person

_tables: set[str] = set()
_erasable: dict[str, tuple[str, ...]] = {}

# Row triggers for changes: a statement that touches no row, such as a cascade into an empty table, is permitted.
_LEVELS = {"update": "ROW", "delete": "ROW", "truncate": "STATEMENT"}

# The arguments of a trigger are the erasable columns of its table.
_FUNCTION = f"""CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND TG_NARGS > 0 AND current_setting('stepmark.erasure', true) <> '' THEN
    IF EXISTS (
      SELECT FROM events_event WHERE id = current_setting('stepmark.erasure')::bigint AND what = 'user.erased'
    ) AND NOT EXISTS (
      SELECT FROM jsonb_each_text(to_jsonb(OLD)) AS before JOIN jsonb_each_text(to_jsonb(NEW)) AS after USING (key)
      WHERE before.value IS DISTINCT FROM after.value
        AND NOT (key = ANY (TG_ARGV) AND position('{TOMBSTONE}' IN after.value) > 0)
    ) THEN RETURN NEW; END IF;
  END IF;
  RAISE EXCEPTION '% is append-only: % is refused', TG_TABLE_NAME, lower(TG_OP)
  USING ERRCODE = 'integrity_constraint_violation';
END $$"""  # noqa: S608  made of constants

_TRIGGER = """CREATE TRIGGER "{name}" BEFORE {operation} ON "{table}"
FOR EACH {level} EXECUTE FUNCTION refuse_change({columns})"""


def register_tables(*tables: str) -> None:
    """Declare tables as append-only. Call this in `AppConfig.ready`."""
    _tables.update(tables)


def register_erasable_columns(table: str, *columns: str) -> None:
    """Name the columns of an append-only table in which an erasure may replace text. Call this in `AppConfig.ready`."""
    _erasable[table] = columns


def erasable_columns() -> dict[str, tuple[str, ...]]:
    return dict(_erasable)


@contextmanager
def erasure(*, event_id: int) -> Iterator[None]:
    """Let the erasable columns be replaced in the block, for the `user.erased` event with this number."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('stepmark.erasure', %s, true)", [str(event_id)])
        yield
        cursor.execute("SELECT set_config('stepmark.erasure', '', true)")


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
                columns = ", ".join(f"'{each}'" for each in _erasable.get(table, ()) if operation == "update")
                level = _LEVELS[operation]
                cursor.execute(
                    _TRIGGER.format(name=name, table=table, operation=operation, level=level, columns=columns)
                )
