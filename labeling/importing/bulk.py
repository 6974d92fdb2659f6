"""Rows into tables in bulk, with ids assigned ahead. One function per engine for each thing; no format is known here.

Everything is called inside one transaction, after `lock`.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import Any

from django.db import connection, models

Row = tuple[Any, ...]
_ROWS_A_STATEMENT = 100
_BLOCK = 2000  # ids fetched at a time; what is left of a block stays a gap


class Table:
    """A model's table and the columns that rows have values for, in their order. The others get their defaults."""

    def __init__(self, model: type[models.Model], *columns: str) -> None:
        self.name = model._meta.db_table
        others = [field for field in model._meta.concrete_fields if field.column not in columns]
        self.columns = (*columns, *(str(field.column) for field in others))
        self.defaults = tuple(field.get_default() for field in others)

    def insert(self, rows: Sequence[Row]) -> None:
        if not rows:
            return
        whole = [row + self.defaults for row in rows] if self.defaults else rows
        if connection.vendor == "postgresql":
            _copy(self.name, self.columns, whole)
        else:
            _insert_many(self.name, self.columns, whole)


def lock(project_id: int) -> None:
    """One import at a time writes into a project. SQLite's transactions are one at a time anyway."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext('labeling.importing'), %s)", [project_id])


def ids(tables: Sequence[str]) -> dict[str, Iterator[int]]:
    """New ids of each table, ascending, for this transaction alone."""
    if connection.vendor == "postgresql":
        return {table: _from_sequence(table) for table in tables}
    return _from_counters(tables)


def time(value: Any) -> Any:
    """A moment as the driver wants it."""
    return connection.ops.adapt_datetimefield_value(value)


def _from_sequence(table: str) -> Iterator[int]:
    """Blocks need not be contiguous: people judge, and take numbers, while a file comes in."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_serial_sequence(%s, 'id')", [table])  # once: for each number it costs more
        (sequence,) = cursor.fetchone()
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT array_agg(nextval(%s::regclass)) FROM generate_series(1, %s)",
                [sequence, _BLOCK],
            )
            yield from sorted(cursor.fetchone()[0])


def _from_counters(tables: Sequence[str]) -> dict[str, Iterator[int]]:
    """The write lock is ours from the transaction's beginning on, so nobody else takes a number meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, seq FROM sqlite_sequence")
        last = dict(cursor.fetchall())
    return {table: count(last.get(table, 0) + 1) for table in tables}


def _copy(table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
    names = ", ".join(f'"{name}"' for name in columns)
    with connection.cursor() as cursor, cursor.copy(f'COPY "{table}" ({names}) FROM STDIN') as copy:
        for row in rows:
            copy.write_row(row)


def _insert_many(table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """Many rows a statement cost half of as many statements: each would look up and write the table's last id."""
    names = ", ".join(f'"{name}"' for name in columns)
    places = f"({', '.join('?' * len(columns))})"
    connection.ensure_connection()
    with connection.wrap_database_errors:
        for start in range(0, len(rows), _ROWS_A_STATEMENT):
            part = rows[start : start + _ROWS_A_STATEMENT]
            statement = f'INSERT INTO "{table}" ({names}) VALUES {", ".join([places] * len(part))}'  # noqa: S608  names of our own columns
            connection.connection.execute(statement, list(chain.from_iterable(part)))
