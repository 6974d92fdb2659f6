"""Entries leave room on their pages, so that a claim writes no index."""

import pytest
from django.db import connection

pytestmark = pytest.mark.django_db


def test_fill_factor_is_set_after_migrate() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT reloptions FROM pg_class WHERE relname = 'labeling_queueentry'")
        assert cursor.fetchone() == (["fillfactor=80"],)
