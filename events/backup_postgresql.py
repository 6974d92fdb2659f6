"""PostgreSQL's side of `events.backup`: its own programs, which must be of the server's version or newer."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import connection, transaction
from django.utils.translation import gettext as _

from events.backup_engine import RowsOf, Unusable


@contextmanager
def copied(*, target: Path) -> Iterator[RowsOf]:
    """A dump of one moment; the rows are counted in that same moment."""
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT pg_export_snapshot()")
        (snapshot,) = cursor.fetchone()
        _call("pg_dump", "--format=custom", "--no-owner", f"--snapshot={snapshot}", f"--file={target}")

        def rows_of(table: str) -> int:
            cursor.execute(f'SELECT count(*) FROM "{table}"')  # noqa: S608 (a table's name)
            return int(cursor.fetchone()[0])

        yield rows_of


def bring_back(*, source: Path) -> None:
    """In one transaction: a backup that cannot be read leaves everything as it was."""
    connection.close()
    _call("pg_restore", "--clean", "--if-exists", "--no-owner", "--single-transaction", str(source), dbname="--dbname=")


def _call(program: str, *arguments: str, dbname: str = "") -> None:
    settings = connection.settings_dict
    path = shutil.which(program)
    if path is None:
        raise Unusable(
            _("%(program)s is not here: install PostgreSQL's client programs of the server's version.")
            % {"program": program}
        )
    done = subprocess.run(  # noqa: S603 (our own arguments)
        [path, *arguments, f"{dbname}{settings['NAME']}"],
        env={**os.environ, **_connection_of(settings)},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise Unusable(f"{program}: {' '.join(done.stderr.split())[:1000]}")


def _connection_of(settings: dict[str, Any]) -> dict[str, str]:
    """By the environment: an argument could be read by everybody on the machine, and the password with it."""
    given = {"PGHOST": "HOST", "PGPORT": "PORT", "PGUSER": "USER", "PGPASSWORD": "PASSWORD"}
    options = {"PGSSLMODE": settings["OPTIONS"].get("sslmode"), "PGSSLROOTCERT": settings["OPTIONS"].get("sslrootcert")}
    wanted = {**{name: settings[key] for name, key in given.items()}, **options}
    return {name: str(value) for name, value in wanted.items() if value}
