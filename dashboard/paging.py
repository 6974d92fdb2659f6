"""Long lists page by page, by key: every page costs the same, and nothing is counted."""

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
    """Rows from the highest key down. `older` and `newer` are the ends of addresses, empty where nothing is.

    `is_cut` says that the search stopped before it had a whole page: `older` goes on from there.
    """

    rows: Sequence[ModelRow]
    older: str = ""
    newer: str = ""
    is_cut: bool = False

    def __bool__(self) -> bool:
        return bool(self.rows)


def paginate(
    rows: QuerySet[ModelRow],
    asked: QueryDict,
    *,
    size: int = 50,
    among: QuerySet[ModelRow] | None = None,
    looks_at: int = 20_000,
    is_scattered: bool = False,
) -> KeysetPage[ModelRow]:
    """The page of `rows`, by primary key from the newest, that `asked` (?before=, ?after=) names.

    Where `rows` is a search through `among`, no more than `looks_at` of those are looked through for one page, however
    rare a hit is: a page always costs the same.

    `is_scattered`: the rows are found by an index, and are few among all of their table. PostgreSQL takes them to lie
    everywhere in it, and would go down the whole table by its key for those of somebody who has just come.
    """
    kept, key = _list_filters(asked), F("pk") + 0 if is_scattered else F("pk")  # a sum is in no index
    before, after = integers.parse_integer(asked.get("before")), integers.parse_integer(asked.get("after"))
    if after is not None:
        return _paginate_upwards(rows, after, kept, size, among, looks_at, key)
    start = rows if before is None else rows.filter(pk__lt=before)
    floor = (
        None if among is None else _find_search_limit(among.filter(pk__lt=before) if before else among, "-pk", looks_at)
    )
    found = list((start if floor is None else start.filter(pk__gte=floor)).order_by(key.desc())[: size + 1])
    is_cut = floor is not None and len(found) <= size
    last = floor if is_cut else found[size - 1].pk if len(found) > size else None
    return KeysetPage(
        found[:size],
        older="" if last is None else build_query(kept, before=last),
        newer=build_query(kept, after=before - 1 if not found else found[0].pk) if before is not None else "",
        is_cut=is_cut,
    )


def _paginate_upwards(
    rows: QuerySet[ModelRow],
    after: int,
    kept: Sequence[tuple[str, str]],
    size: int,
    among: QuerySet[ModelRow] | None,
    looks_at: int,
    key: Any,
) -> KeysetPage[ModelRow]:
    ceiling = None if among is None else _find_search_limit(among.filter(pk__gt=after), "pk", looks_at)
    start = rows.filter(pk__gt=after) if ceiling is None else rows.filter(pk__gt=after, pk__lte=ceiling)
    found = list(start.order_by(key.asc())[: size + 1])
    is_cut = ceiling is not None and len(found) <= size
    last = ceiling if is_cut else found[size - 1].pk if len(found) > size else None
    return KeysetPage(
        list(reversed(found[:size])),
        older=build_query(kept, before=found[0].pk if found else after + 1),
        newer="" if last is None else build_query(kept, after=last),
        is_cut=is_cut,
    )


def _find_search_limit(among: QuerySet[ModelRow], order: str, looks_at: int) -> int | None:
    """The key at which the search stops; None where there are fewer rows than it may look at."""
    return among.order_by(order).values_list("pk", flat=True)[looks_at - 1 : looks_at].first()


def build_query(kept: Iterable[tuple[str, str]], **place: Any) -> str:
    return "?" + urlencode([*kept, *((name, str(value)) for name, value in place.items())])


def _list_filters(asked: QueryDict) -> list[tuple[str, str]]:
    """Filters stay while pages are turned."""
    return [
        (name, value) for name, values in asked.lists() if name not in _PAGE_PARAMETERS for value in values if value
    ]
