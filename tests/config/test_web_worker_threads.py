"""The threads of the web server: which of them gets a request, and how they end."""

import threading
from concurrent.futures import Future
from typing import Any, cast

import pytest

from config.web_worker import Connection, WarmThreads

NO_CONNECTION = cast(Connection, None)


def thread_of(pool: WarmThreads) -> int:
    return int(pool.submit(lambda _: threading.get_ident(), NO_CONNECTION).result(timeout=5))


def occupy(pool: WarmThreads, go_on: threading.Event) -> "Future[Any]":
    """Let a thread wait for the event and return its number."""
    is_busy = threading.Event()

    def wait(_: Connection) -> int:
        is_busy.set()
        go_on.wait(5)
        return threading.get_ident()

    future = pool.submit(wait, NO_CONNECTION)
    is_busy.wait(0.2)  # not if it must wait for a thread
    return future


def test_the_thread_that_became_idle_last_gets_the_next_request() -> None:
    pool = WarmThreads(4)
    first_ends, second_ends = threading.Event(), threading.Event()
    first, second = occupy(pool, first_ends), occupy(pool, second_ends)
    second_ends.set()
    second.result(timeout=5)
    first_ends.set()
    last = first.result(timeout=5)
    assert last != second.result()
    assert {thread_of(pool) for _ in range(5)} == {last}
    pool.shutdown()


def test_requests_beyond_the_threads_wait_for_one() -> None:
    pool, go_on = WarmThreads(1), threading.Event()
    first = occupy(pool, go_on)
    second = occupy(pool, go_on)
    assert not second.done()
    go_on.set()
    assert first.result(timeout=5) == second.result(timeout=5)
    pool.shutdown()


def test_an_error_reaches_the_future_and_the_thread_goes_on() -> None:
    pool = WarmThreads(1)
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda _: 1 // 0, NO_CONNECTION).result(timeout=5)
    assert thread_of(pool)
    pool.shutdown()


def test_shutdown_interrupts_a_submit_of_the_same_thread() -> None:
    """A signal may end the worker at any moment of its main thread."""
    pool = WarmThreads(1)
    with pool._lock:
        pool.shutdown()


def test_shutdown_ends_idle_and_busy_threads_after_their_requests() -> None:
    pool, go_on = WarmThreads(2), threading.Event()
    busy = occupy(pool, go_on)
    assert thread_of(pool)
    pool.shutdown()
    go_on.set()
    assert busy.result(timeout=5)
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("web-")]
    for thread in threads:
        thread.join(5)
    assert not any(thread.is_alive() for thread in threads)
