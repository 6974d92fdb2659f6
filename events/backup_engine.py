"""What the two engines of `events.backup` have in common."""

from collections.abc import Callable

RowsOf = Callable[[str], int]


class Unusable(Exception):
    """The backup cannot be made or brought back. The text says why and what to do."""
