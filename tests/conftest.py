"""What every test may ask for. The engine is the one that DATABASE_URL names; without it, SQLite."""

import datetime as dt
import gc
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.conf import settings
from django.db import connection
from pytest_django.plugin import DjangoDbBlocker

from tests import emptying, migrating, servers, standing, together
from tests.people.house import House, make_house

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_configure(config: pytest.Config) -> None:
    """Nothing leaves this machine, and nothing is asked of servers that were not named."""
    config.option.allow_hosts = "127.0.0.1,::1,localhost"
    config.option.allow_unix_socket = True
    emptying.use()
    migrating.use()
    # Static files under their own names: hashed ones exist after `collectstatic` alone.
    settings.STORAGES["staticfiles"]["BACKEND"] = "django.contrib.staticfiles.storage.StaticFilesStorage"
    # None of them are collected either: each client of a test would look at every file there before its first request.
    settings.STATIC_ROOT = settings.DATA_DIR / "static"
    settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # the real one is slow on purpose
    if not os.environ.get("REDIS_URL"):
        near = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
        settings.CACHES = {name: {**near, "LOCATION": name} for name in settings.CACHES}
    else:
        for cache in settings.CACHES.values():
            cache["LOCATION"] = _own_cache(os.environ["REDIS_URL"])
    _wait_for_nothing()
    if config.option.markexpr == "journey":
        _keep_the_database_in_a_file()


def _wait_for_nothing() -> None:
    """What takes its time for the sake of people, or of a disk, who are not there in a test."""
    if connection.vendor == "postgresql":
        default: dict[str, Any] = settings.DATABASES["default"]
        default["OPTIONS"]["options"] += " -c synchronous_commit=off"
    # How long an example takes says what else the machine does.
    hypothesis.settings.register_profile("suite", deadline=None)
    hypothesis.settings.load_profile("suite")


def pytest_collection_finish() -> None:
    """What is there by now stays to the end: nothing of it is looked through again for what could be thrown away, and a
    test throws away too little to look for it every few hundred objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def _own_cache(url: str) -> str:
    """Clearing a cache empties its whole Redis database: each process of the suite has one, apart from the broker's."""
    server, _, number = url.rpartition("/")
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return f"{server}/{(int(number) - 1 - process) % 16}" if number.isdecimal() else url


def _keep_the_database_in_a_file() -> None:
    """A browser asks several things at once. SQLite's test database in memory has one connection for all threads, whose
    transactions would run into each other; a file has one for each, as it is when the platform runs."""
    if connection.vendor == "sqlite":
        settings.DATA_DIR.mkdir(parents=True, exist_ok=True)
        default: dict[str, Any] = settings.DATABASES["default"]
        default.setdefault("TEST", {})["NAME"] = str(settings.DATA_DIR / "journeys.sqlite3")


@pytest.fixture
def now() -> dt.datetime:
    """The time that verbs are told. Tests that need more add to it."""
    return dt.datetime(2026, 11, 18, 9, 0, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def built_house(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[bytes]:
    with standing.rows(django_db_blocker):
        with django_db_blocker.unblock():
            house = make_house()
        yield pickle.dumps(house)  # a sixth of what a deep copy costs


@pytest.fixture
def house(built_house: bytes) -> House:
    """A project and its people, logged in: made once for all tests of a module, and found by each as it was made."""
    found: House = pickle.loads(built_house)
    return found


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real data beside the project; its tests are skipped, and say so, where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no shared data at {SHARED_DATA}")
    return SHARED_DATA


@pytest.fixture
def on_postgresql() -> bool:
    return connection.vendor == "postgresql"


@pytest.fixture
def real_connections(transactional_db: None, tmp_path: Path) -> Iterator[None]:
    """For tests in which several people do something at once: see `tests.together.at_once`."""
    with together.own_file(str(tmp_path / "test.sqlite3")):
        yield


@pytest.fixture(scope="session")
def broker() -> Iterator[str]:
    """The address of a broker: REDIS_URL where that is set, otherwise a server of our own that ends with the tests."""
    if url := os.environ.get("REDIS_URL"):
        yield url
        return
    with servers.short_folder() as folder, servers.valkey(folder / "valkey.sock", folder / "valkey.log"):
        yield f"unix://{folder / 'valkey.sock'}"
