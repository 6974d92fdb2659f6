"""Read many rows in a job handler, which yields between pages.

The runner commits after each chunk, and a cursor does not outlive its transaction. So each page is a separate query
that starts after the last key.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from django.db.models import QuerySet

PAGE_SIZE = 2000

Item = TypeVar("Item")


def iterate_by_key(rows: QuerySet[Any], *fields: str, size: int = PAGE_SIZE) -> Iterator[tuple[Any, ...]]:
    """Yield the primary key and these fields of each row, ordered by key."""
    last = 0
    while page := list(rows.filter(pk__gt=last).order_by("pk").values_list("pk", *fields)[:size]):
        yield from page
        last = page[-1][0]


def split(items: Sequence[Item], size: int = PAGE_SIZE) -> Iterator[Sequence[Item]]:
    """Yield the items in parts, such as ids of which one query can name only so many."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
