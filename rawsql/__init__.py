"""Run hand-written SQL as prepared statements.

PostgreSQL plans a statement of several parts in 0.8 ms and runs it in 0.4 ms (measured), so each connection prepares
it once. Longer statements are `.sql` files beside the module that runs them; `load_sql` reads them. Parameters are
named, `%(name)s`, so that a statement can be read, and pasted into psql, without counting placeholders.

`BulkTable` and `BinaryTable` write many rows with COPY, and `new_ids` assigns their ids in advance.
"""

import functools
import itertools
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import orjson
from django.db import DEFAULT_DB_ALIAS, connection, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.db.models.expressions import RawSQL
from psycopg import RawCursor

Parameters = Sequence[Any] | Mapping[str, Any]
BulkRow = tuple[Any, ...]
Row = TypeVar("Row", bound=NamedTuple)

_HEALTH_CHECK_AGE = 2.0  # seconds
PLAN_AGE = 900.0  # seconds; planning again takes each connection up to 10 milliseconds
_ROWS_PER_STATEMENT = 16  # each number of rows is another statement, and a connection keeps 128 of them prepared
_FIRST_IDS, _IDS_PER_BLOCK = 100, 2000  # fetched at a time; unused ids leave a gap
_BINARY_HEADER, _BINARY_TRAILER = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"


@functools.cache
def load_sql(module_file: str, name: str) -> str:
    """Return the SQL file `name` from the folder of a module: `load_sql(__file__, "claim.sql")`."""
    return Path(module_file).with_name(name).read_text(encoding="utf-8")


def sections(sql: str) -> dict[str, str]:
    """Return the parts of a file that begin with lines `-- section: name`, for a second statement that shares them."""
    _, *parts = re.split(r"^-- section: (\w+)\n", sql, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def fetch_rows(sql: str, parameters: Parameters) -> list[tuple[Any, ...]]:
    """Run one statement and return its rows; an empty list if it returns none.

    Placeholders are `%(name)s` with a mapping, or `%s` with a sequence.
    """
    here = connections[DEFAULT_DB_ALIAS]
    numbered, values = _numbered(sql, parameters)
    if _can_bypass_cursor(here):
        with here.wrap_database_errors:
            _forget_old_plans(here.connection)
            cursor = _prepared_cursor(here.connection).execute(numbered, values)
            # `cursor.description` would build an object per column.
            return cursor.fetchall() if cursor.pgresult.nfields else []
    with _cursor(here) as cursor:
        cursor.execute(numbered, values)
        return cursor.fetchall() if cursor.description else []


def fetch_named(row_type: type[Row], sql: str, parameters: Parameters) -> list[Row]:
    """Run one statement and return its rows as named tuples, whose fields are the columns by name and order."""
    numbered, values = _numbered(sql, parameters)
    with _cursor(connections[DEFAULT_DB_ALIAS]) as cursor:
        cursor.execute(numbered, values)
        columns = tuple(column.name for column in cursor.description)
        if columns != row_type._fields:
            raise TypeError(f"{row_type.__name__} has the fields {row_type._fields}, the statement returns {columns}")
        return [row_type._make(row) for row in cursor.fetchall()]


def write_rows(sql: str, row: str, values: Sequence[BulkRow]) -> None:
    """Run a statement for all these rows, some at a time. `sql` has `{rows}` for the placeholders of its rows."""
    for start in range(0, len(values), _ROWS_PER_STATEMENT):
        part = values[start : start + _ROWS_PER_STATEMENT]
        fetch_rows(_for_rows(sql, row, len(part)), tuple(itertools.chain.from_iterable(part)))


class BulkTable:
    """A model's table, with the columns that rows have values for. The other columns get their defaults."""

    def __init__(self, model: type[models.Model], *columns: str) -> None:
        self.name = model._meta.db_table
        others = [field for field in model._meta.concrete_fields if field.column not in columns]
        self.columns = (*columns, *(str(field.column) for field in others))
        self.defaults = tuple(field.get_default() for field in others)

    def insert(self, rows: Sequence[BulkRow]) -> None:
        """Copy the rows into the table, inside the caller's transaction."""
        if not rows:
            return
        names = ", ".join(f'"{name}"' for name in self.columns)
        with connection.cursor() as cursor, cursor.copy(f'COPY "{self.name}" ({names}) FROM STDIN') as copy:
            for row in rows:
                copy.write_row(row + self.defaults if self.defaults else row)


class BinaryTable:
    """A model's table for rows that the caller has encoded as PostgreSQL's binary format wants them: nothing is parsed
    on either side, which takes a third of the time."""

    def __init__(self, model: type[models.Model], *columns: str) -> None:
        self.name = model._meta.db_table
        self.columns = columns
        if missing := {str(field.column) for field in model._meta.concrete_fields} - {*columns}:
            raise TypeError(f"rows of {self.name} need {', '.join(sorted(missing))}")

    def insert(self, rows: Sequence[bytes]) -> None:
        """Copy the rows into the table, inside the caller's transaction. A row may be in several pieces."""
        if not rows:
            return
        names = ", ".join(f'"{name}"' for name in self.columns)
        statement = f'COPY "{self.name}" ({names}) FROM STDIN (FORMAT BINARY)'
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.write(_BINARY_HEADER + b"".join(rows) + _BINARY_TRAILER)


def new_ids(table: str) -> Iterator[int]:
    """Yield new ids, ascending, for this transaction only. Other transactions may use ids in between."""
    size = _FIRST_IDS
    while True:
        yield from take_ids(table, size)
        size = _IDS_PER_BLOCK


def take_ids(table: str, n: int) -> Sequence[int]:
    """Return this many new ids, ascending, for this transaction only. Unused ids leave a gap."""
    if not n:
        return ()
    first, last, ids = fetch_rows(_TAKE_IDS, {"sequence": _find_sequence(table), "n": n})[0]
    return range(first, last + 1) if ids is None else sorted(ids)


# Another transaction may have taken ids in between; only then the list is sent.
_TAKE_IDS = """
SELECT min(id), max(id), CASE WHEN max(id) - min(id) >= %(n)s::integer THEN array_agg(id) END
FROM (SELECT nextval(%(sequence)s::regclass) AS id FROM generate_series(1, %(n)s::integer)) AS taken"""


@functools.cache
def _find_sequence(table: str) -> str:
    ((sequence,),) = fetch_rows("SELECT pg_get_serial_sequence(%s, 'id')", [table])
    return str(sequence)


def values_subquery(values: Sequence[Any]) -> RawSQL:
    """Return many values as one parameter of a Django query, for use with `__in`."""
    number = "::bigint" if values and isinstance(values[0], int) else ""
    given = f"SELECT value{number} FROM json_array_elements_text(%s::json) AS given (value)"  # noqa: S608  text of our own
    return RawSQL(given, [orjson.dumps(list(values)).decode()])  # noqa: S611  text of our own


def _can_bypass_cursor(here: Any) -> bool:
    """Return whether Django's cursor can be left out: no log of queries, no wrapper around them."""
    if here.queries_logged or here.execute_wrappers:
        return False
    if here.connection is None or not here.health_check_done:
        _connect(here)
    here.validate_no_broken_transaction()
    return True


def _connect(here: Any) -> None:
    """Connect. Skip Django's health check of each request if the server answered within the last seconds."""
    now, answered_at = time.monotonic(), getattr(here, "answered_at", -math.inf)
    if now - answered_at < _HEALTH_CHECK_AGE:
        here.health_check_done = True
    here.close_if_health_check_failed()
    here.ensure_connection()
    here.answered_at = now


def _forget_old_plans(link: Any) -> None:
    """Let PostgreSQL plan the statements of a connection again from time to time, for the present size of the tables.

    It would do so only after ANALYZE, which jobs run that write much, and the beat for tables that grew
    (`planner_statistics`). This is for when neither runs: a plan for small tables reads all rows of large ones."""
    now = time.monotonic()
    planned_at = getattr(link, "planned_at", None)
    if planned_at is None:
        link.planned_at = now
    elif now - planned_at >= PLAN_AGE:
        link.execute("DISCARD PLANS")
        link.planned_at = now


def _cursor(here: BaseDatabaseWrapper) -> CursorWrapper:
    """Return a Django cursor, which counts and logs queries."""
    _connect(here)
    with here.wrap_database_errors:
        _forget_old_plans(here.connection)
    cursor = _prepared_cursor(here.connection)
    return here.make_debug_cursor(cursor) if here.queries_logged else here.make_cursor(cursor)


def _prepared_cursor(link: Any) -> Any:
    """Return a cursor that prepares statements. Django's own cursors put the parameters into the text."""
    link.prepare_threshold = 0  # prepare on first use; only cursors made here use it
    return RawCursor(link)


@functools.cache
def _for_rows(sql: str, row: str, n: int) -> str:
    return sql.replace("{rows}", ", ".join([row] * n))


def _numbered(sql: str, parameters: Parameters) -> tuple[str, Sequence[Any]]:
    text, names = _parsed(sql)
    return text, [parameters[name] for name in names] if isinstance(parameters, Mapping) else parameters


@functools.cache
def _parsed(sql: str) -> tuple[str, tuple[str, ...]]:
    """Return the text without comment lines and with PostgreSQL's numbered placeholders, and the names in order.

    psycopg would parse a long statement on every call; this parses it once. Each name has one number.
    """
    numbers: dict[str, int] = {}
    counter = itertools.count(1)

    def number(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        return f"${numbers.setdefault(match[1], len(numbers) + 1) if match[1] else next(counter)}"

    text = re.sub(r"^ *--.*\n", "", sql, flags=re.MULTILINE)  # psycopg encodes and hashes the text on every call
    return re.sub(r"%(?:\((\w+)\))?s|%%", number, text), tuple(numbers)
