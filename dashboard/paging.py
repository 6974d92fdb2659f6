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
    is_upwards = after is not None
    bound = {"pk__gt": after} if is_upwards else {} if before is None else {"pk__lt": before}
    rows = rows.filter(**bound)
    limit = None if among is None else _find_search_limit(among.filter(**bound), is_upwards, looks_at)
    if limit is not None:
        rows = rows.filter(pk__lte=limit) if is_upwards else rows.filter(pk__gte=limit)
    found = list(rows.order_by(key.asc() if is_upwards else key.desc())[: size + 1])
    is_cut = limit is not None and len(found) <= size
    last = limit if is_cut else found[size - 1].pk if len(found) > size else None
    if after is not None:
        older = _build_query(filters, before=found[0].pk if found else after + 1)
        newer = "" if last is None else _build_query(filters, after=last)
        return KeysetPage(found[:size][::-1], older, newer, is_cut)
    older = "" if last is None else _build_query(filters, before=last)
    newer = "" if before is None else _build_query(filters, after=found[0].pk if found else before - 1)
    return KeysetPage(found[:size], older, newer, is_cut)


def _find_search_limit(among: QuerySet[ModelRow], is_upwards: bool, looks_at: int) -> int | None:
    """Find the key at which the search stops; None if all rows may be searched."""
    return among.order_by("pk" if is_upwards else "-pk").values_list("pk", flat=True)[looks_at - 1 : looks_at].first()


def _build_query(filters: Iterable[tuple[str, str]], **position: Any) -> str:
    return "?" + urlencode([*filters, *((name, str(value)) for name, value in position.items())])


def _list_filters(query: QueryDict) -> list[tuple[str, str]]:
    """List the parameters that every page keeps."""
    return [
        (name, value) for name, values in query.lists() if name not in _PAGE_PARAMETERS for value in values if value
    ]
