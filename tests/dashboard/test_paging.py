"""Keyset pages repeat no row, leave out none, keep the filters, and ignore nonsense in the URL."""

import pytest
from django.http import QueryDict

from dashboard import paging
from labeling.models import Project
from tests import factories

pytestmark = pytest.mark.django_db


def asked(address: str) -> QueryDict:
    return QueryDict(address.removeprefix("?"))


def walk(address: str, way: str, *, is_scattered: bool) -> list[list[int]]:
    """Yield the pages from a URL on, by following one of its two links."""
    pages = []
    while True:
        page = paging.paginate(Project.objects.all(), asked(address), size=3, is_scattered=is_scattered)
        pages.append([project.pk for project in page.rows])
        address = getattr(page, way)
        if not address:
            return pages


@pytest.mark.parametrize("is_scattered", [False, True])
def test_of_walks_down_and_up_over_every_row(is_scattered: bool) -> None:
    keys = sorted((factories.make_project().pk for _ in range(8)), reverse=True)
    assert walk("state=open", "older", is_scattered=is_scattered) == [keys[:3], keys[3:6], keys[6:]]
    assert walk(f"after={keys[-1]}", "newer", is_scattered=is_scattered) == [keys[4:7], keys[1:4], keys[:1]]


def test_of_keeps_filters_and_drops_the_place() -> None:
    for _ in range(4):
        factories.make_project()
    page = paging.paginate(Project.objects.all(), asked("state=open&q=a+b&before=99999999"), size=3)
    assert page.older == f"?state=open&q=a+b&before={page.rows[-1].pk}"
    assert page.newer == f"?state=open&q=a+b&after={page.rows[0].pk}"


@pytest.mark.parametrize("place", ["-1", "x", "9" * 40, "٣", "", "1.5"])
def test_of_takes_nonsense_for_the_first_page(place: str) -> None:
    project = factories.make_project()
    assert [each.pk for each in paging.paginate(Project.objects.all(), asked(f"before={place}")).rows] == [project.pk]


def test_of_looks_through_so_many_and_goes_on_from_there() -> None:
    keys = sorted((factories.make_project(f"p{n}").pk for n in range(9)), reverse=True)
    rare = Project.objects.filter(slug__in=["p0", "p8"])
    first = paging.paginate(rare, asked(""), size=3, among=Project.objects.all(), looks_at=4)
    assert ([each.slug for each in first.rows], first.is_cut) == (["p8"], True)
    second = paging.paginate(rare, asked(first.older), size=3, among=Project.objects.all(), looks_at=4)
    assert (list(second.rows), second.is_cut) == ([], True)
    third = paging.paginate(rare, asked(second.older), size=3, among=Project.objects.all(), looks_at=4)
    assert ([each.slug for each in third.rows], third.is_cut, third.older) == (["p0"], False, "")
    back = paging.paginate(rare, asked(third.newer), size=3, among=Project.objects.all(), looks_at=9)
    assert [each.pk for each in back.rows] == [keys[0]]
