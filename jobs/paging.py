"""Read many rows for a handler that yields in between.

The runner commits after each chunk, and a cursor does not outlive its transaction. So each page is a query of its own
that starts where the last one ended.
"""

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet

PAGE_SIZE = 2000


def iterate_by_key(rows: QuerySet[Any], *fields: str, size: int = PAGE_SIZE) -> Iterator[tuple[Any, ...]]:
    """The primary key and these fields of each row, in the order of the keys."""
    last = 0
    while page := list(rows.filter(pk__gt=last).order_by("pk").values_list("pk", *fields)[:size]):
        yield from page
        last = page[-1][0]
