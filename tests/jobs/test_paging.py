"""Rows are read page by page, so that no query is open between two of them."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs import paging
from labeling.models import Project
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("count", "queries"), [(0, 1), (1, 2), (4, 3), (5, 4)])
def test_by_key_asks_anew_for_each_page(count: int, queries: int) -> None:
    made = [factories.make_project(f"p{number}") for number in range(count)]
    with CaptureQueriesContext(connection) as asked:
        found = list(paging.iterate_by_key(Project.objects.all(), "slug", size=2))
    assert found == [(project.pk, project.slug) for project in made]
    assert len(asked) == queries
