"""Run calls concurrently, each with its own database connection."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connections

Answer = TypeVar("Answer")


def run_at_once(*calls: Callable[[], Answer]) -> list[Answer | Exception]:
    """Call all of them in threads that start together. Return results and exceptions in order."""
    gate = threading.Barrier(len(calls))

    def run(call: Callable[[], Answer]) -> Answer | Exception:
        try:
            gate.wait(timeout=60)
            return call()
        except Exception as error:  # noqa: BLE001  the test checks each result
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))
