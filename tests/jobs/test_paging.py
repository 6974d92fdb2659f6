"""Each page is a separate query."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs import paging
from labeling.models import Project
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("count", "queries"), [(0, 1), (1, 2), (4, 3), (5, 4)])
def test_each_page_is_one_query(count: int, queries: int) -> None:
    projects = [factories.make_project(f"p{number}") for number in range(count)]
    with CaptureQueriesContext(connection) as queries_run:
        rows = list(paging.iterate_by_key(Project.objects.all(), "slug", size=2))
    assert rows == [(project.pk, project.slug) for project in projects]
    assert len(queries_run) == queries


def test_split_keeps_every_item_in_order() -> None:
    assert list(paging.split([1, 2, 3, 4, 5], 2)) == [[1, 2], [3, 4], [5]]
    assert list(paging.split([], 2)) == []
