"""SQLite's side of `events.backup`: its online backup, which people do not notice."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from django.db import connection
from django.utils.translation import gettext as _

from events.backup_engine import RowsOf, Unusable


@contextmanager
def copied(*, target: Path) -> Iterator[RowsOf]:
    """A copy of one moment. In one step: cut into steps it would begin again at every rating that comes in between.
    Readers and writers go on meanwhile, because the log is written ahead."""
    connection.ensure_connection()
    with closing(sqlite3.connect(target)) as copy:
        connection.connection.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it
        _examine(copy)

        def rows_of(table: str) -> int:
            found = copy.execute(f'SELECT count(*) FROM "{table}"')  # noqa: S608 (a table's name)
            return int(found.fetchone()[0])

        yield rows_of


def bring_back(*, source: Path) -> None:
    """In one transaction of the database that is there: whoever reads meanwhile sees the old or the new whole."""
    connection.ensure_connection()
    with closing(sqlite3.connect(source)) as copy:
        _examine(copy)
        copy.backup(connection.connection)
    connection.close()


def _examine(copy: sqlite3.Connection) -> None:
    try:
        said = copy.execute("PRAGMA quick_check").fetchone()[0]
    except sqlite3.DatabaseError as error:
        said = str(error)
    if said != "ok":
        raise Unusable(_("The database in this backup is damaged: %(said)s") % {"said": said})
