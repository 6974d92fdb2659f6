"""Keyset paging: every page costs the same, and no rows are counted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from django.db.models import F, Model, QuerySet
from django.http import QueryDict

from formats import integers

ModelRow = TypeVar("ModelRow", bound=Model)
_PAGE_PARAMETERS = ("before", "after")


@dataclass(frozen=True)
class KeysetPage(Generic[ModelRow]):
    """Rows from the highest key down. `older` and `newer` are query strings, empty without such a page.

    `is_cut`: the search reached its limit before the page was full; `older` continues it.
    """

    rows: Sequence[ModelRow]
    older: str = ""
    newer: str = ""
    is_cut: bool = False

    def __bool__(self) -> bool:
        return bool(self.rows)


def paginate(
    rows: QuerySet[ModelRow],
    query: QueryDict,
    *,
    size: int = 50,
    among: QuerySet[ModelRow] | None = None,
    looks_at: int = 20_000,
    is_scattered: bool = False,
) -> KeysetPage[ModelRow]:
    """Return the page of `rows` that `query` (?before=, ?after=) names, newest first.

    If `rows` is a search through `among`, at most `looks_at` rows of `among` are searched per page, so that a rare hit
    does not make a page slow.

    `is_scattered`: the rows are few and matches by an index. PostgreSQL would assume an even distribution and scan the
    whole table by primary key, so the sort key is hidden from its index.
    """
    filters, key = _list_filters(query), F("pk") + 0 if is_scattered else F("pk")
    before, after = integers.parse_integer(query.get("before")), integers.parse_integer(query.get("after"))
    if after is not None:
        return _paginate_upwards(rows, after, filters, size, among, looks_at, key)
    start = rows if before is None else rows.filter(pk__lt=before)
    floor = (
        None if among is None else _find_search_limit(among.filter(pk__lt=before) if before else among, "-pk", looks_at)
    )
    matches = list((start if floor is None else start.filter(pk__gte=floor)).order_by(key.desc())[: size + 1])
    is_cut = floor is not None and len(matches) <= size
    last = floor if is_cut else matches[size - 1].pk if len(matches) > size else None
    return KeysetPage(
        matches[:size],
        older="" if last is None else build_query(filters, before=last),
        newer=build_query(filters, after=before - 1 if not matches else matches[0].pk) if before is not None else "",
        is_cut=is_cut,
    )


def _paginate_upwards(
    rows: QuerySet[ModelRow],
    after: int,
    filters: Sequence[tuple[str, str]],
    size: int,
    among: QuerySet[ModelRow] | None,
    looks_at: int,
    key: Any,
) -> KeysetPage[ModelRow]:
    ceiling = None if among is None else _find_search_limit(among.filter(pk__gt=after), "pk", looks_at)
    start = rows.filter(pk__gt=after) if ceiling is None else rows.filter(pk__gt=after, pk__lte=ceiling)
    matches = list(start.order_by(key.asc())[: size + 1])
    is_cut = ceiling is not None and len(matches) <= size
    last = ceiling if is_cut else matches[size - 1].pk if len(matches) > size else None
    return KeysetPage(
        list(reversed(matches[:size])),
        older=build_query(filters, before=matches[0].pk if matches else after + 1),
        newer="" if last is None else build_query(filters, after=last),
        is_cut=is_cut,
    )


def _find_search_limit(among: QuerySet[ModelRow], order: str, looks_at: int) -> int | None:
    """Find the key at which the search stops; None if all rows may be searched."""
    return among.order_by(order).values_list("pk", flat=True)[looks_at - 1 : looks_at].first()


def build_query(filters: Iterable[tuple[str, str]], **position: Any) -> str:
    return "?" + urlencode([*filters, *((name, str(value)) for name, value in position.items())])


def _list_filters(query: QueryDict) -> list[tuple[str, str]]:
    """List the parameters that every page keeps."""
    return [
        (name, value) for name, values in query.lists() if name not in _PAGE_PARAMETERS for value in values if value
    ]
