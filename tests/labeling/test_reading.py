"""Chunks that are read ahead, by connections of their own."""

import threading

import pytest
from django.db import connection

from labeling import manifest
from labeling.manifest import Filters
from tests import factories, servers
from tests.labeling.importing import lines_of_prm800k as prm
from tests.labeling.importing.test_load import bring_in


@pytest.mark.django_db(transaction=True)
def test_chunks_come_in_order_and_leave_nothing_open() -> None:
    """On PostgreSQL outside of a transaction chunks are read ahead; whoever stops early leaves no connection behind."""
    project = factories.make_project()
    names = [f"rater {number:02}" for number in range(20)]
    bring_in(project, *(prm.line(labeler=name) for name in names), chunk=20)
    frozen = manifest.freeze(project=project, filters=Filters(), purpose="archive", now=factories.NOW, by=None)
    before = threading.active_count()
    found = [each.facts.labeler for chunk in manifest.readings(frozen, chunk=3) for each in chunk]
    assert found == names
    early = manifest.readings(frozen, chunk=3)
    assert [each.facts.labeler for each in next(early)] == names[:3]
    early.close()  # type: ignore[attr-defined]  # it is a generator
    assert threading.active_count() == before
    if connection.vendor == "postgresql":
        servers.wait_until(lambda: _links() == 1, what="the end of the others")


def _links() -> int:
    clients = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type LIKE 'client%'"
    with connection.cursor() as cursor:
        cursor.execute(clients)
        return int(cursor.fetchone()[0])
