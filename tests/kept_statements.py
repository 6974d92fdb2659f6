"""Keep prepared statements when a test's transaction is rolled back.

psycopg forgets them after each ROLLBACK, so every test planned the same statements again, the largest in 1.3 ms. That
was a third of PostgreSQL's time. Only a table that was created in the transaction would need it, and PostgreSQL itself
plans a statement again when a table has changed.
"""

from collections.abc import Callable, Sequence
from typing import Any

from psycopg._preparing import PrepareManager

_discards: Callable[..., bool] = PrepareManager._should_discard


def install() -> None:
    """Patch the connections of this process. There is no public setting."""
    manager: Any = PrepareManager
    manager._should_discard = _should_discard


def _should_discard(manager: PrepareManager, prep: Any, results: Sequence[Any]) -> bool:
    return _discards(manager, prep, [each for each in results if each.command_status != b"ROLLBACK"])
