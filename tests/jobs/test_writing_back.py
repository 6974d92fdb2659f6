"""SQLite's log goes back into its file without anybody's transaction."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs import writing_back


@pytest.mark.django_db(transaction=True)
def test_write_back_asks_sqlite_alone() -> None:
    with CaptureQueriesContext(connection) as queries:
        asked = writing_back.write_back()
    assert asked == (connection.vendor == "sqlite")
    assert len(queries) == asked


@pytest.mark.django_db
def test_write_back_leaves_a_transaction_alone() -> None:
    with CaptureQueriesContext(connection) as queries:
        assert writing_back.write_back() is False
        assert writing_back.between_chunks() == 0.0
    assert len(queries) == 0
