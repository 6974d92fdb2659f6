"""Find or start the servers for the tests, before Django reads its settings. This is a pytest plugin.

PostgreSQL: DATABASE_URL, else the embedded one. Redis: REDIS_URL, else a Valkey of this run, because a server that
several runs share would mix their messages. The server of commands is always one of this run.
"""

import gc
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from host import socket_paths
from supervisor import database
from tests import command_server, servers

# A test database need not survive a power failure.
_OPTIONS = {"fsync": "off", "full_page_writes": "off", "max_connections": "100", "shared_buffers": "128MB"} | {
    # It would analyze tables between two tests, when they are empty, and statements are planned for empty tables.
    "autovacuum": "off"
}

_running = ExitStack()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests() -> Iterator[None]:
    gc.disable()  # until all tests are collected: nothing that is imported is garbage
    os.environ.setdefault("SECRET_KEY", "test")
    os.environ.setdefault("STEPMARK_RATE_LIMIT_FACTOR", "0")  # tests of the limits turn them on
    os.environ.setdefault("STEPMARK_OUTBOUND_HOSTS", "127.0.0.1,::1")  # servers that tests start
    os.environ.update(_running.enter_context(servers_of_tests()))
    return (yield)


def pytest_unconfigure() -> None:
    _running.close()


@contextmanager
def servers_of_tests() -> Iterator[dict[str, str]]:
    """Yield the variables that name the servers, and stop what was started for them."""
    with ExitStack() as started:
        names = ("DATABASE_URL", "REDIS_URL", command_server.VARIABLE)
        addresses = {name: os.environ.get(name, "") for name in names}
        if "" in addresses.values():
            folder = started.enter_context(servers.short_folder())
            if not addresses["DATABASE_URL"]:
                started.enter_context(database.running(folder, options=_OPTIONS))
                addresses["DATABASE_URL"] = _address(socket_paths.database_folder(folder))
                addresses["STEPMARK_ACCEPT_DATA_LOSS"] = "yes"
            if not addresses["REDIS_URL"]:
                started.enter_context(servers.running_valkey(folder / "valkey.sock", folder / "valkey.log"))
                addresses["REDIS_URL"] = f"unix://{folder / 'valkey.sock'}"
            if not addresses[command_server.VARIABLE]:
                started.enter_context(servers.running_command_server(folder))
                addresses[command_server.VARIABLE] = str(folder)
        yield addresses


def _address(socket_folder: Path) -> str:
    return f"postgresql://{database.USER}@/stepmark?host={socket_folder}"
