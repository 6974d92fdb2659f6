"""Fixtures for all tests. `tests.environment` has already set the addresses of the servers."""

import datetime as dt
import fcntl
import gc
import os
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.conf import settings
from pytest_django.plugin import DjangoDbBlocker

from supervisor import first_migration
from tests import fast_flush, kept_statements, module_rows, outer_templates, servers, template_database
from tests.people.personas import LoggedInPersonas, log_in_personas
from tests.supervisor import platform_process

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_configure(config: pytest.Config) -> None:
    """Allow connections to this machine only, and speed up what tests do not test."""
    config.option.allow_hosts = "127.0.0.1,::1,localhost"
    config.option.allow_unix_socket = True
    fast_flush.install()
    first_migration.install()
    kept_statements.install()
    outer_templates.install()
    template_database.install()
    # Plain names of static files: hashed ones exist only after `collectstatic`.
    settings.STORAGES["staticfiles"]["BACKEND"] = "django.contrib.staticfiles.storage.StaticFilesStorage"
    # An empty static folder: otherwise each test client would scan every file before its first request.
    settings.STATIC_ROOT = settings.DATA_DIR / "static"
    settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.MD5PasswordHasher"
    ]  # the real hasher is deliberately slow
    for cache in settings.CACHES.values():
        cache["LOCATION"] = _cache_url_of_process(os.environ["REDIS_URL"])
    _skip_waits()
    settings.LEAST_FREE_BYTES = 0  # this machine may have little left


def _skip_waits() -> None:
    """Turn off durability and deadlines."""
    default: dict[str, Any] = settings.DATABASES["default"]
    # A statement that takes minutes has a plan made for empty tables: better an error than a wait.
    default["OPTIONS"]["options"] += " -c synchronous_commit=off -c jit=off -c statement_timeout=300s"
    # A busy machine slows down examples.
    hypothesis.settings.register_profile("suite", deadline=None)
    hypothesis.settings.load_profile("suite")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without the only mark that is asked for: importing them takes longer than many tests."""
    mark = config.option.markexpr
    if mark not in {"fault", "static"} or collection_path.suffix != ".py":
        return None
    return not re.search(rf"\b{mark}\b", collection_path.read_text()) or None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files with slow tests first: one that starts last would run alone at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """Exclude everything loaded so far from garbage collection, and collect less often."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


def pytest_sessionfinish() -> None:
    """Leave nothing for the collections at the end, in which pytest looks for unraisable exceptions."""
    gc.freeze()


def _cache_url_of_process(url: str) -> str:
    """Return a Redis database for this process, because clearing a cache empties its whole database."""
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    if url.startswith("unix://"):
        return f"{url}?db={1 + process % 15}"
    server, _, number = url.rpartition("/")
    return f"{server}/{(int(number) - 1 - process) % 16}" if number.isdecimal() else url


@pytest.fixture
def now() -> dt.datetime:
    """The current time of a test. Add to it for later times."""
    return dt.datetime(2026, 11, 18, 9, 0, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def pickled_personas(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[bytes]:
    with module_rows.keep_rows(django_db_blocker):
        with django_db_blocker.unblock():
            personas = log_in_personas()
        yield pickle.dumps(personas)  # a sixth of what a deep copy costs


@pytest.fixture
def personas(pickled_personas: bytes) -> LoggedInPersonas:
    """A project with its members, logged in. It is made once per module, and each test gets a fresh copy."""
    personas: LoggedInPersonas = pickle.loads(pickled_personas)
    return personas


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with real data beside the project. Without it, the tests that need it are skipped."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no shared data at {SHARED_DATA}")
    return SHARED_DATA


@pytest.fixture
def real_connections(transactional_db: None) -> None:
    """Real transactions, for tests with concurrent connections: see `tests.concurrency.run_at_once`."""


@pytest.fixture(scope="session")
def started_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder that a first start of the platform without the demo leaves. All processes of a run share it;
    `platform_process.copy_data` copies it for a test that is not about the first start."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with (base / "first-start.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (base / "first-start").exists():
            platform_process.make_first_start(base / "first-start")
    return base / "first-start"


@pytest.fixture(scope="session")
def broker() -> Iterator[str]:
    """Start a broker for this process. Processes that share one would take each other's messages."""
    with servers.short_folder() as folder, servers.running_valkey(folder / "valkey.sock", folder / "valkey.log"):
        yield f"unix://{folder / 'valkey.sock'}"
