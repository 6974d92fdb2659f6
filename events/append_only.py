"""Lock append-only tables: triggers in the database refuse UPDATE, DELETE, and TRUNCATE. Only this module creates and
drops these triggers.

Apps name their tables in `AppConfig.ready`. Every migrate creates missing triggers.
"""

from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections

_tables: set[str] = set()

# Row triggers for changes: a statement that touches no row, such as a cascade into an empty table, is permitted.
_LEVELS = {"update": "ROW", "delete": "ROW", "truncate": "STATEMENT"}

_FUNCTION = """CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '% is append-only: % is refused', TG_TABLE_NAME, lower(TG_OP)
USING ERRCODE = 'integrity_constraint_violation'; END $$"""

_TRIGGER = """CREATE TRIGGER "{name}" BEFORE {operation} ON "{table}"
FOR EACH {level} EXECUTE FUNCTION refuse_change()"""

_EXISTING = "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal"


def register_tables(*tables: str) -> None:
    """Declare tables as append-only. Call this in `AppConfig.ready`."""
    _tables.update(tables)


def registered_tables() -> frozenset[str]:
    return frozenset(_tables)


def missing_triggers(using: str = DEFAULT_DB_ALIAS) -> list[str]:
    """Return the triggers that the database lacks. Empty if every registered table is locked."""
    return sorted(set(_required_triggers()) - _existing_triggers(using))


def create_triggers(using: str = DEFAULT_DB_ALIAS) -> None:
    """Create every missing trigger on the tables that exist."""
    names = missing_triggers(using)
    if not names:
        return
    tables = set(connections[using].introspection.table_names())
    with connections[using].cursor() as cursor:
        cursor.execute(_FUNCTION)
        for name in names:
            table, operation = _required_triggers()[name]
            if table in tables:
                level = _LEVELS[operation]
                cursor.execute(_TRIGGER.format(name=name, table=table, operation=operation, level=level))


def drop_triggers(using: str = DEFAULT_DB_ALIAS) -> None:
    """Drop the triggers. Only tests do this. The next migrate creates them again."""
    required = _required_triggers()
    with connections[using].cursor() as cursor:
        for name in sorted(_existing_triggers(using) & set(required)):
            cursor.execute(f'DROP TRIGGER "{name}" ON "{required[name][0]}"')


def on_migrated(*, using: str, **_: Any) -> None:
    create_triggers(using)


def _required_triggers() -> dict[str, tuple[str, str]]:
    return {
        f"{table}_refuses_{operation}": (table, operation) for table in sorted(_tables) for operation in sorted(_LEVELS)
    }


def _existing_triggers(using: str) -> set[str]:
    with connections[using].cursor() as cursor:
        cursor.execute(_EXISTING)
        return {name for (name,) in cursor.fetchall()}
