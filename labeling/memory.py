"""Keeps SQLite's own memory small while much is read: what is mapped and cached of the file counts as this process's,
and would grow with the table. Elsewhere it does nothing. Writes no rows."""

from collections.abc import Iterator
from contextlib import contextmanager

import statements

_CACHE_KB = 2 * 1024  # each sorting of rows takes as much again


@contextmanager
def spared() -> Iterator[None]:
    """For as long as the block lasts. A snapshot of a hundred thousand traces takes 97 MB so (measured), one of ten
    thousand nearly as many, both at the speed of a large cache."""
    if statements.on_postgresql():
        yield
        return
    spare = {"mmap_size": 0, "cache_size": -_CACHE_KB}
    # A database in memory maps nothing, and does not answer.
    before = {name: found[0][0] for name in spare if (found := statements.rows(f"PRAGMA {name}", []))}
    _set(spare)
    try:
        yield
    finally:
        _set(before)


def _set(sizes: dict[str, int]) -> None:
    for name, size in sizes.items():
        statements.rows(f"PRAGMA {name} = {size:d}", [])
