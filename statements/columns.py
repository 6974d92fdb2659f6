"""Reads millions of rows of whole numbers as arrays. As tuples they take forty times the memory, and ten times as long.

PostgreSQL sends them as it keeps them: with every column eight bytes long and none empty, each row has the same length,
and nothing is left to be read number by number. SQLite gives them one by one.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from django.db import DEFAULT_DB_ALIAS, connections

import statements

Columns = npt.NDArray[np.int64]  # (rows, columns)

_AT_ONCE = 50_000  # rows
_HEAD, _END = 19, 2  # bytes before the first row and behind the last one


def numbers(columns: Sequence[str], source: str, values: Sequence[int]) -> Iterator[Columns]:
    """The rows of `SELECT columns source` in blocks, by one statement; `source` has a `%s` for each of these values. No
    column may be empty. Read to the end before anything else is asked: on SQLite the statement stays open."""
    whole = [int(value) for value in values]
    if statements.on_postgresql():
        return _on_postgresql(columns, source % tuple(whole))
    return _on_sqlite(f"SELECT {', '.join(columns)} {source}", whole)


def _on_sqlite(sql: str, values: Sequence[int]) -> Iterator[Columns]:
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(sql, values)
        while found := cursor.fetchmany(_AT_ONCE):
            flat = np.fromiter(itertools.chain.from_iterable(found), dtype=np.int64)
            yield flat.reshape(len(found), -1)


def _on_postgresql(columns: Sequence[str], source: str) -> Iterator[Columns]:
    """COPY takes no parameters: whole numbers stand in its text."""
    cast = ", ".join(f"({column})::bigint" for column in columns)
    row = 2 + 12 * len(columns)  # how many columns; of each its length and itself
    rest = b""
    for block in _blocks(f"COPY (SELECT {cast} {source}) TO STDOUT (FORMAT BINARY)", row * _AT_ONCE):
        data = rest + block
        n = (len(data) - _END) // row if len(data) > _END else 0
        rest = data[n * row :]
        if n:
            yield _parsed(data[: n * row], n, row)


def _parsed(data: bytes, n: int, row: int) -> Columns:
    cells = np.frombuffer(data, dtype=np.uint8).reshape(n, row)[:, 2:].reshape(n, -1, 12)
    if not (np.ascontiguousarray(cells[:, :, :4]).view(">i4") == 8).all():
        raise ValueError("a column is empty in some row: whole numbers alone can be read so")
    return np.ascontiguousarray(cells[:, :, 4:]).view(">i8")[:, :, 0].astype(np.int64)


def _blocks(sql: str, size: int) -> Iterator[bytes]:
    """What the server sends, without the head, in pieces of about this size."""
    here = connections[DEFAULT_DB_ALIAS]
    here.ensure_connection()
    link: Any = here.connection
    with here.wrap_database_errors, link.cursor() as cursor, cursor.copy(sql) as copy:
        kept = bytearray()
        for piece in _pieces(copy, link.pgconn):
            kept += piece
            if len(kept) >= size:
                yield bytes(kept)
                kept.clear()
        yield bytes(kept)


def _pieces(copy: Any, link: Any) -> Iterator[bytes]:
    """A row each, as the server sends it. What has arrived is taken as it lies there: asking psycopg for it row by row
    takes longer than all the rest. Its end is left for psycopg, which has to notice it."""
    yield bytes(copy.read())[_HEAD:]
    while piece := copy.read():
        yield piece
        while len(piece) != _END:
            length, piece = link.get_copy_data(1)
            if length <= 0:
                break
            yield piece
