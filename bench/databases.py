"""Temporary databases for benchmarks, on the server of DATABASE_URL."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit


def server() -> str:
    """Return the address of the server to measure on."""
    url = os.environ.get("DATABASE_URL")
    if not url:
        raise SystemExit("Set DATABASE_URL to a PostgreSQL server on which the benchmark may create databases.")
    return url


@contextmanager
def temporary_databases(names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Create migrated databases and yield connections by name. `use` makes one the default."""
    url = server()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    os.environ.setdefault("SECRET_KEY", "only for the benchmark")
    os.environ["STEPMARK_LOG_LEVEL"] = "ERROR"
    os.environ["STEPMARK_RATE_LIMIT_FACTOR"] = "0"
    with _on_server(url, names) as made:
        yield made


def use_database(connection: Any) -> None:
    """Use this database as the default from now on."""
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
            close_connections()
            for database in named.values():
                server.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')


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


def close_connections() -> None:
    """Close all connections, so that databases can be dropped."""
    from django.db import connections

    connections.close_all()
