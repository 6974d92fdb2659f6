"""A database that could lose confirmed ratings is refused."""

import pytest
from django.db import connection
from django.test import Client
from pytest_django import Settings

from events import durability


@pytest.mark.django_db
def test_unsafe_database_is_refused_unless_the_operator_accepts_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ACCEPTS_DATA_LOSS = False
    monkeypatch.setattr(durability, "_UNSAFE_SETTINGS", "SELECT 'fsync'")
    assert [each.id for each in durability.check_durability(None, databases=["default"])] == ["events.E001"]
    assert durability.check_durability(None) == []
    settings.ACCEPTS_DATA_LOSS = True
    assert durability.describe_danger() == ""


@pytest.mark.django_db
def test_settings_are_read_from_the_server() -> None:
    with connection.cursor() as cursor:
        cursor.execute(durability._UNSAFE_SETTINGS)
        unsafe = {name for (name,) in cursor.fetchall()}
        for name in ("fsync", "full_page_writes", "synchronous_commit"):
            cursor.execute(f"SHOW {name}")
            assert (cursor.fetchone() == ("off",)) == (name in unsafe)


@pytest.mark.django_db
@pytest.mark.parametrize(("value", "is_unsafe"), [("off", True), ("on", False)])
def test_connection_that_does_not_wait_for_the_disk_is_refused(
    value: str, is_unsafe: bool, settings: Settings, client: Client
) -> None:
    settings.ACCEPTS_DATA_LOSS = False
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL synchronous_commit = {value}")
    assert ("synchronous_commit" in durability.describe_danger()) == is_unsafe
    if is_unsafe:
        response = client.get("/health/ready")
        assert (response.status_code, response.json()["database"]) == (503, "unsafe")
