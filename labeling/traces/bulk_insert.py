"""Write rows to tables in bulk, with ids assigned in advance.

Call everything inside one transaction, after `lock_project_import`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from django.db import connection, models

BulkRow = tuple[Any, ...]
_BLOCK = 2000  # ids fetched at a time; unused ids of a block leave a gap


class BulkTable:
    """A model's table, with the columns that rows have values for. The other columns get their defaults."""

    def __init__(self, model: type[models.Model], *columns: str) -> None:
        self.name = model._meta.db_table
        others = [field for field in model._meta.concrete_fields if field.column not in columns]
        self.columns = (*columns, *(str(field.column) for field in others))
        self.defaults = tuple(field.get_default() for field in others)

    def insert(self, rows: Sequence[BulkRow]) -> None:
        if not rows:
            return
        _copy(self.name, self.columns, [row + self.defaults for row in rows] if self.defaults else rows)


def lock_project_import(project_id: int) -> None:
    """Allow only one import at a time to write to a project, until the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('labeling.traces'), %s)", [project_id])


def new_ids(tables: Sequence[str]) -> dict[str, Iterator[int]]:
    """Return new ids of each table, ascending, for this transaction only."""
    return {table: _ids_from_sequence(table) for table in tables}


def _ids_from_sequence(table: str) -> Iterator[int]:
    """Yield ids. Blocks are not contiguous, because people submit ratings during an import."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_serial_sequence(%s, 'id')", [table])  # once, because it is slow
        (sequence,) = cursor.fetchone()
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT array_agg(nextval(%s::regclass)) FROM generate_series(1, %s)",
                [sequence, _BLOCK],
            )
            yield from sorted(cursor.fetchone()[0])


def _copy(table: str, columns: Sequence[str], rows: Sequence[BulkRow]) -> None:
    names = ", ".join(f'"{name}"' for name in columns)
    with connection.cursor() as cursor, cursor.copy(f'COPY "{table}" ({names}) FROM STDIN') as copy:
        for row in rows:
            copy.write_row(row)
