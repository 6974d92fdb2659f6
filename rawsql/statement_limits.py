"""How long a statement may take, and how long a connection may be idle, chosen by each process.

A person waits for a web request, so its statements end after some seconds: a statement with a bad plan, or one that
waits for a lock, must not hold a thread and its connection for minutes. Jobs and commands have no limit.

A worker has a connection for each thread, and PostgreSQL a process of up to ten megabytes for each connection. Those
that a quiet platform does not use are closed by PostgreSQL.
"""

import contextlib
from collections.abc import Iterator

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connection, connections
from psycopg.errors import QueryCanceled

IDLE_SECONDS = 30  # in a transaction, of a web request
UNUSED_SECONDS = 90  # between two tasks of a worker's thread


def limit_web_statements() -> None:
    """Limit the statements of this process, before it opens a connection."""
    seconds = settings.WEB_STATEMENT_SECONDS
    _add_options(f"-c statement_timeout={seconds}s -c idle_in_transaction_session_timeout={IDLE_SECONDS}s")


def limit_idle_connections() -> None:
    """Let PostgreSQL close the connections that a thread of this process does not use, before one is opened."""
    _add_options(f"-c idle_session_timeout={UNUSED_SECONDS}s")


@contextlib.contextmanager
def connection_may_idle() -> Iterator[None]:
    """Keep the connection of this thread, which may wait for another server between two statements."""
    with connection.cursor() as cursor:
        cursor.execute("SET idle_session_timeout = 0")
    try:
        yield
    finally:
        with contextlib.suppress(Error), connection.cursor() as cursor:  # the error that ended the work is the news
            cursor.execute("RESET idle_session_timeout")


def _add_options(limits: str) -> None:
    options = connections.settings[DEFAULT_DB_ALIAS]["OPTIONS"]
    if limits not in options["options"]:
        options["options"] += f" {limits}"


def is_statement_timeout(error: BaseException | None) -> bool:
    """Return whether PostgreSQL ended the statement because it took too long."""
    return error is not None and isinstance(error.__cause__, QueryCanceled)
