"""How long a statement may take, chosen by each process.

A person waits for a web request, so its statements end after some seconds: a statement with a bad plan, or one that
waits for a lock, must not hold a thread and its connection for minutes. Jobs and commands have no limit.
"""

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from psycopg.errors import QueryCanceled

IDLE_SECONDS = 30  # in a transaction, of a web request


def limit_web_statements() -> None:
    """Limit the statements of this process, before it opens a connection."""
    seconds = settings.WEB_STATEMENT_SECONDS
    limits = f"-c statement_timeout={seconds}s -c idle_in_transaction_session_timeout={IDLE_SECONDS}s"
    options = connections.settings[DEFAULT_DB_ALIAS]["OPTIONS"]
    if limits not in options["options"]:
        options["options"] += f" {limits}"


def is_statement_timeout(error: BaseException | None) -> bool:
    """Return whether PostgreSQL ended the statement because it took too long."""
    return error is not None and isinstance(error.__cause__, QueryCanceled)
