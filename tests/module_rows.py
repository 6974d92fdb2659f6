"""Rows that all tests of a module begin with, made once.

A test's own transaction lies within the one that they stand in: each test finds them as they were made. Only for
modules without transactional tests, and objects that a test changes are to be copied for it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from pytest_django.plugin import DjangoDbBlocker


@contextmanager
def keep_rows(blocker: DjangoDbBlocker) -> Iterator[None]:
    """What is written inside stands until the block ends."""
    around = transaction.atomic()
    with blocker.unblock():
        around.__enter__()
    try:
        yield
    finally:
        with blocker.unblock():
            transaction.set_rollback(True)
            around.__exit__(None, None, None)
