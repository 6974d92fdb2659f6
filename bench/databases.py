"""Databases that a benchmark makes for itself and drops at the end: on the server of DATABASE_URL, otherwise SQLite
files in a folder of its own."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit


@contextmanager
def of_our_own(names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Migrated databases by name, as connections that take the place of Django's default: see `use`."""
    url = os.environ.get("DATABASE_URL")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    os.environ.setdefault("SECRET_KEY", "only for the benchmark")
    os.environ["STEPMARK_LOG_LEVEL"] = "ERROR"
    with _on_server(url, names) if url else _in_folder(names) as made:
        yield made


def use(connection: Any) -> None:
    """Everything goes to this database from here on."""
    from django.db import connections

    connections["default"] = connection


@contextmanager
def _on_server(url: str, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    import psycopg

    named = {name: f"bench_{os.getpid()}_{name}" for name in names}
    first = named[names[0]]
    with psycopg.connect(url, autocommit=True) as server:
        try:
            server.execute(f'CREATE DATABASE "{first}"')
            os.environ["DATABASE_URL"] = urlunsplit(urlsplit(url)._replace(path=f"/{first}"))
            _set_up()
            for other in list(named.values())[1:]:
                server.execute(f'CREATE DATABASE "{other}" TEMPLATE "{first}"')
            yield {name: _connection(database) for name, database in named.items()}
        finally:
            close()
            for database in named.values():
                server.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')


@contextmanager
def _in_folder(names: Sequence[str]) -> Iterator[dict[str, Any]]:
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    os.environ["STEPMARK_DATA"] = str(folder)
    try:
        _set_up()
        for name in names:
            shutil.copy(folder / "stepmark.sqlite3", folder / f"{name}.sqlite3")
        yield {name: _connection(str(folder / f"{name}.sqlite3")) for name in names}
    finally:
        close()
        shutil.rmtree(folder)


def _set_up() -> None:
    import django
    from django.core.management import call_command
    from django.db import connections

    django.setup()
    call_command("migrate", verbosity=0)
    connections.close_all()


def _connection(database: str) -> Any:
    from django.db import connections

    connection = connections["default"].copy()
    connection.settings_dict["NAME"] = database
    return connection


def close() -> None:
    """Let go of what is connected: a database is dropped, and a file removed, only then."""
    from django.db import connections

    connections.close_all()
