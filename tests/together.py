"""Several people at the same moment, each with a connection of their own."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from django.db import connection, connections

Answer = TypeVar("Answer")


def at_once(*calls: Callable[[], Answer]) -> list[Answer | Exception]:
    """Call them all, each in a thread, none before all are ready. What one raises stands in its place."""
    gate = threading.Barrier(len(calls))

    def run(call: Callable[[], Answer]) -> Answer | Exception:
        try:
            gate.wait(timeout=20)
            return call()
        except Exception as error:  # noqa: BLE001  the test judges what came of each call
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


@contextmanager
def own_file(file: str) -> Iterator[None]:
    """SQLite's test database lives in memory, where connections do not wait for each other as they do in a file. Move
    it to a file for a while. PostgreSQL needs none of this."""
    if connection.vendor != "sqlite":
        yield
        return
    memory, name = connection.connection, connection.settings_dict["NAME"]
    connection.connection, connection.settings_dict["NAME"] = None, file
    connection.connect()
    try:
        memory.backup(connection.connection)
        yield
    finally:
        connection.connection.close()
        connection.connection, connection.settings_dict["NAME"] = memory, name
