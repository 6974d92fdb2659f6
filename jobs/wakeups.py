"""Request a task of `jobs.scheduler` as soon as it has work, instead of waiting for the beat to find the work.

A request may be lost, with the broker or with this process: the beat still finds the work within seconds.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial

import structlog
from celery import current_app
from django.core.cache import cache
from django.db import transaction
from kombu.exceptions import OperationalError as BrokerError

from jobs import failures

# The task does the work of all requests in the meantime: soon after a quiet time, and less often under steady work,
# when it would otherwise run for every few requests.
DELAY_SECONDS, BUSY_DELAY_SECONDS = 3, 30
EXPIRES_SECONDS = 30  # after its time: the beat has found the work by then

logger = structlog.get_logger(__name__)
_covered_until: dict[str, float] = {}
_served: ContextVar[str] = ContextVar("served", default="")


def request_task(task: str, *, is_awaited: bool = False) -> None:
    """Run the task soon after the surrounding transaction commits. A request that an earlier one covers costs
    nothing. `is_awaited`: someone waits for it, so that it also runs soon under steady work."""
    if task != _served.get():
        transaction.on_commit(partial(_publish, task, is_awaited))


@contextmanager
def serving(task: str) -> Iterator[None]:
    """Ignore requests from within the task itself, which looks at the end whether any work is left."""
    token = _served.set(task)
    try:
        yield
    finally:
        _served.reset(token)


def _publish(task: str, is_awaited: bool) -> None:
    request = f"{task}:awaited" if is_awaited else task
    if time.monotonic() < _covered_until.get(request, 0.0):
        return
    delay = BUSY_DELAY_SECONDS if not is_awaited and cache.get(f"recent:{task}") else DELAY_SECONDS
    if not cache.add(f"requested:{request}", 1, timeout=delay):  # by another process, to be served soon
        _covered_until[request] = time.monotonic() + 1
        return
    _covered_until[request] = time.monotonic() + delay
    cache.set(f"recent:{task}", 1, timeout=delay + BUSY_DELAY_SECONDS)
    try:
        current_app.send_task(task, countdown=delay, expires=delay + EXPIRES_SECONDS, retry=False)
    except BrokerError as error:
        logger.warning("task.not_requested", task=task, reason=failures.redact_secrets(str(error)))
