"""A thread that does the work of a worker while a journey clicks."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import connections


@contextmanager
def running_worker(run_due: Callable[[], object]) -> Iterator[None]:
    """Call `run_due` five times a second until the block ends."""
    is_over = threading.Event()

    def work() -> None:
        try:
            while not is_over.wait(0.2):
                run_due()
        finally:
            connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
