"""Runs the few hand-written statements of the house, in as few steps as the engine allows.

On PostgreSQL they are prepared once a connection: planning a statement of several parts takes longer than running it
(0.8 of 1.2 ms, measured). SQLite keeps its statements prepared by itself; there Django's way around its cursor takes
twice as long as a short statement (35 of 51 µs), so that it is left out unless somebody looks at the queries.
"""

import datetime as dt
import functools
import itertools
import math
import re
import time
from collections.abc import Iterable, Sequence
from typing import Any

import orjson
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.db.models.expressions import RawSQL

Statement = tuple[str, Sequence[Any]]

_MOMENT = 2.0  # seconds
_ROWS_A_STATEMENT = 16  # each number of rows is a text of its own, and a connection keeps 128 of them prepared


@functools.cache
def on_postgresql() -> bool:
    """The engine of this process. Asked often, and Django's way to a connection is long."""
    return connections[DEFAULT_DB_ALIAS].vendor == "postgresql"


def rows(sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Run one statement with `%s` places, and give back what it returns (nothing, where it returns no rows)."""
    here = connections[DEFAULT_DB_ALIAS]
    if _may_go_straight(here):
        with here.wrap_database_errors:
            found = _straight(here).execute(_written(sql), parameters)
            return found.fetchall() if _gives_rows(found) else []
    with _cursor(here) as cursor:
        cursor.execute(_with_numbers(sql) if on_postgresql() else sql, parameters)
        return cursor.fetchall() if cursor.description else []


def several(work: Iterable[Statement]) -> None:
    """Run one statement after the other for what they change, inside of the caller's transaction."""
    here = connections[DEFAULT_DB_ALIAS]
    if not _may_go_straight(here):
        for sql, parameters in work:
            rows(sql, parameters)
        return
    with here.wrap_database_errors:
        run = _straight(here).execute
        for sql, parameters in work:
            run(_written(sql), parameters)


def of_rows(sql: str, row: str, values: Sequence[tuple[Any, ...]]) -> list[Statement]:
    """Few statements instead of one for each of these: `sql` with `{rows}` where a row's places are to stand. SQLite
    looks up and writes the last id of a table with each statement, so that this takes half the time."""
    parts = [values[start : start + _ROWS_A_STATEMENT] for start in range(0, len(values), _ROWS_A_STATEMENT)]
    return [(_for_rows(sql, row, len(part)), tuple(itertools.chain.from_iterable(part))) for part in parts]


def moment(at: dt.datetime | None) -> dt.datetime | str | None:
    """A time as a parameter. SQLite keeps text, as Django writes it there, which takes Django ten times as long."""
    if at is None or on_postgresql():
        return at
    return str(at)[:-6] if at.tzinfo is dt.UTC else str(at.astimezone(dt.UTC).replace(tzinfo=None))


def among(column: str) -> str:
    """The condition that a column holds one of many; its parameter is `listed`."""
    return f"{column} = ANY (%s)" if on_postgresql() else f"{column} IN (SELECT value FROM json_each(%s))"  # noqa: S608  names of our own columns


def listed(values: Iterable[Any]) -> Any:
    """Many values as one parameter, so that the text of a statement does not depend on their number."""
    in_order = sorted(set(values))
    return in_order if on_postgresql() else orjson.dumps(in_order).decode()


def given(values: Sequence[Any]) -> RawSQL:
    """Many values as one parameter of a query of Django's, to be looked for among them."""
    if on_postgresql():
        number = "::bigint" if values and isinstance(values[0], int) else ""
        given = f"SELECT value{number} FROM json_array_elements_text(%s::json) AS given (value)"  # noqa: S608  text of our own
        return RawSQL(given, [orjson.dumps(list(values)).decode()])  # noqa: S611  text of our own
    return RawSQL("SELECT value FROM json_each(%s)", [orjson.dumps(list(values)).decode()])


def in_utc(at: dt.datetime | None) -> dt.datetime | None:
    """A time that a statement gave back. SQLite's do not say that they are in UTC."""
    return at if at is None or at.tzinfo is not None else at.replace(tzinfo=dt.UTC)


def _may_go_straight(here: Any) -> bool:
    """Whether nobody would miss Django's cursor: no log of queries, nothing wrapped around them."""
    if here.queries_logged or here.execute_wrappers:
        return False
    if here.connection is None or not here.health_check_done:
        _connect(here)
    here.validate_no_broken_transaction()
    return True


def _connect(here: Any) -> None:
    """With each request Django asks whether the server still answers. Not where it has answered a moment ago."""
    now, spoke_at = time.monotonic(), getattr(here, "spoke_at", -math.inf)
    if now - spoke_at < _MOMENT:
        here.health_check_done = True
    here.close_if_health_check_failed()
    here.ensure_connection()
    here.spoke_at = now


def _straight(here: Any) -> Any:
    """What runs statements without Django's way around it."""
    return _preparing(here.connection) if on_postgresql() else here.connection


def _gives_rows(found: Any) -> bool:
    # psycopg makes a description of every column when it is asked for one.
    return bool(found.pgresult.nfields if on_postgresql() else found.description)


def _cursor(here: BaseDatabaseWrapper) -> CursorWrapper:
    """A cursor that Django looks after: it counts and logs what goes through."""
    if not on_postgresql():
        return here.cursor()
    _connect(here)
    cursor = _preparing(here.connection)
    return here.make_debug_cursor(cursor) if here.queries_logged else here.make_cursor(cursor)


def _preparing(link: Any) -> Any:
    """Django's own cursors send parameters inside the text, which cannot be prepared."""
    link.prepare_threshold = 0  # from the first time on; only cursors made here look at it
    return _raw_cursor()(link)


@functools.cache
def _raw_cursor() -> Any:
    from psycopg import RawCursor

    return RawCursor


@functools.cache
def _for_rows(sql: str, row: str, n: int) -> str:
    return sql.replace("{rows}", ", ".join([row] * n))


def _written(sql: str) -> str:
    return _with_numbers(sql) if on_postgresql() else _with_marks(sql)


@functools.cache
def _with_marks(sql: str) -> str:
    """With the places as SQLite writes them."""
    return sql.replace("%s", "?").replace("%%", "%")


@functools.cache
def _with_numbers(sql: str) -> str:
    """With the places as PostgreSQL writes them: psycopg reads longer statements anew each time, and this one once."""
    number = itertools.count(1)
    return re.sub("%[s%]", lambda place: "%" if place[0] == "%%" else f"${next(number)}", sql)
