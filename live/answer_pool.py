"""Threads of this process that ask servers for options, so that no thread of the web server waits for a model.

Requests are rows: if the process ends, the next look at the session has them asked again. Prefetched options have
threads of their own, so that they never delay the options that somebody waits for.
"""

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import structlog
from django.db import DatabaseError, connections, transaction

from live import option_requests
from live.models import LiveSession, OptionRequest
from live.option_requests import Clock

_AWAITED_THREADS = 16
_PREFETCH_THREADS = 8

logger = structlog.get_logger(__name__)
# Threads start with their first request, so after the process has forked.
_awaited = ThreadPoolExecutor(_AWAITED_THREADS, thread_name_prefix="live")
_prefetches = ThreadPoolExecutor(_PREFETCH_THREADS, thread_name_prefix="live-prefetch")
_RENEW_SECONDS = 2.0
_lock = threading.Lock()
_renewer: threading.Thread | None = None
_running: dict[int, "Future[None]"] = {}  # by request; an awaited one replaces its prefetch


def start_requests(*, session: LiveSession, clock: Clock) -> None:
    """Ask for the options that a session needs, after the surrounding transaction commits."""
    ids = option_requests.list_unasked(session=session, now=clock())
    if ids:
        rows = OptionRequest.objects.filter(pk__in=ids, turns__ended_at=None, turns__isnull=False)
        awaited = set(rows.values_list("pk", flat=True))
        transaction.on_commit(partial(_submit, ids, awaited, clock))


def _submit(ids: list[int], awaited: set[int], clock: Clock) -> None:
    for request_id in ids:
        with _lock:
            if request_id in _running and request_id not in awaited:
                continue  # the page asks more often than the server answers
            pool = _awaited if request_id in awaited else _prefetches
            future = pool.submit(_answer, request_id, clock)
            _running[request_id] = future
            _start_renewer(clock)
        future.add_done_callback(partial(_forget, request_id))


def _start_renewer(clock: Clock) -> None:
    """Start the thread that renews leases, unless it runs. Call it with the lock."""
    global _renewer
    if _renewer is None:
        _renewer = threading.Thread(target=_renew, args=(clock,), name="live-leases", daemon=True)
        _renewer.start()


def _renew(clock: Clock) -> None:
    global _renewer
    while True:
        time.sleep(_RENEW_SECONDS)
        with _lock:
            running = [request_id for request_id, future in _running.items() if future.running()]
            if not _running:
                _renewer = None
                return
        try:
            option_requests.renew_leases(request_ids=running, now=clock())
        except DatabaseError:
            logger.warning("live.leases_not_renewed", exc_info=True)  # they are asked again
        finally:
            connections.close_all()


def _forget(request_id: int, future: "Future[None]") -> None:
    with _lock:
        if _running.get(request_id) is future:
            del _running[request_id]


def wait_until_idle(timeout: float = 30.0) -> None:
    """Wait for the requests of this process."""
    with _lock:
        running = list(_running.values())
    for future in running:
        future.result(timeout)


def _answer(request_id: int, clock: Clock) -> None:
    try:
        option_requests.answer_request(request_id=request_id, now=clock(), clock=clock)
    except Exception:
        # The lease ends, and the request is asked again.
        logger.exception("live.request_failed", request=request_id)
    finally:
        connections.close_all()
