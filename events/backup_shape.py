"""Whether tables are those that this version of Stepmark works with. Versions that were never released change their
tables under the same name of a migration, so that the list of migrations alone does not tell them apart. Reads only."""

from typing import Any

from django.apps import apps
from django.db import connection

Columns = dict[str, list[str]]


def columns() -> Columns:
    """The columns of every table that is there."""
    with connection.cursor() as cursor:
        return {table: _columns_of(cursor, table) for table in sorted(connection.introspection.table_names(cursor))}


def _columns_of(cursor: Any, table: str) -> list[str]:
    cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)} LIMIT 0")  # noqa: S608  a table's name
    return sorted(column[0] for column in cursor.description)


def lacking(there: Columns) -> str:
    """The first table or column that this version needs and that is not there; empty where nothing is missing."""
    for model in sorted(apps.get_models(), key=lambda each: each._meta.db_table):
        table = model._meta.db_table
        for name in (field.column for field in model._meta.local_concrete_fields):
            if name not in there.get(table, ()):
                return f"{table}.{name}" if table in there else table
    return ""
