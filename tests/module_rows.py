"""Create rows once for all tests of a module.

The transaction of each test is nested in the one that created the rows, so each test sees them unchanged. This works
only in modules without transactional tests. Copy objects that a test modifies.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from pytest_django.plugin import DjangoDbBlocker

from tests import kept_statements


@contextmanager
def keep_rows(blocker: DjangoDbBlocker) -> Iterator[None]:
    """Keep the rows written inside until the block ends, then roll back."""
    around = transaction.atomic()
    with blocker.unblock():
        around.__enter__()
    try:
        yield
    finally:
        with blocker.unblock():
            kept_statements.forget_statements()
            transaction.set_rollback(True)
            around.__exit__(None, None, None)
