"""Long lists page by page, by key: every page costs the same, and nothing is counted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from django.db.models import Model, QuerySet
from django.http import QueryDict

Row = TypeVar("Row", bound=Model)
_WORDS = ("before", "after")


@dataclass(frozen=True)
class Page(Generic[Row]):
    """Rows from the highest key down. `older` and `newer` are the ends of addresses, empty where nothing is."""

    rows: Sequence[Row]
    older: str = ""
    newer: str = ""
    kept: tuple[tuple[str, str], ...] = field(default=())

    def __bool__(self) -> bool:
        return bool(self.rows)


def of(rows: QuerySet[Row], asked: QueryDict, *, size: int = 50) -> Page[Row]:
    """The page of `rows`, by primary key from the newest, that `asked` (?before=, ?after=) names."""
    kept = _kept(asked)
    before, after = _number(asked.get("before")), _number(asked.get("after"))
    if after is not None:
        found = list(rows.filter(pk__gt=after).order_by("pk")[: size + 1])
        return _page(list(reversed(found[:size])), kept, has_older=True, has_newer=len(found) > size)
    start = rows if before is None else rows.filter(pk__lt=before)
    found = list(start.order_by("-pk")[: size + 1])
    return _page(found[:size], kept, has_older=len(found) > size, has_newer=before is not None)


def _page(found: list[Row], kept: tuple[tuple[str, str], ...], *, has_older: bool, has_newer: bool) -> Page[Row]:
    older = address(kept, before=found[-1].pk) if found and has_older else ""
    newer = address(kept, after=found[0].pk) if found and has_newer else ""
    return Page(found, older=older, newer=newer, kept=kept)


def address(kept: Iterable[tuple[str, str]], **place: Any) -> str:
    return "?" + urlencode([*kept, *((name, str(value)) for name, value in place.items())])


def _kept(asked: QueryDict) -> tuple[tuple[str, str], ...]:
    """Filters stay while pages are turned."""
    return tuple((name, value) for name, values in asked.lists() if name not in _WORDS for value in values if value)


def _number(text: str | None) -> int | None:
    """Keys are positive and fit into the database's integers; anything else asks for the first page."""
    if text is None or not text.isascii() or not text.isdecimal() or len(text) > 18:
        return None
    return int(text)
