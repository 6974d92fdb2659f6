"""Request a task of `jobs.scheduler` as soon as it has work, instead of waiting for the beat to find the work.

A request may be lost, with the broker or with this process: the beat still finds the work within seconds.
"""

import time
from functools import partial

import structlog
from celery import current_app
from django.core.cache import cache
from django.db import transaction
from kombu.exceptions import OperationalError as BrokerError

from jobs import failures

DELAY_SECONDS = 3  # the task does the work of all requests in the meantime

logger = structlog.get_logger(__name__)
_requested_at: dict[str, float] = {}


def request_task(task: str) -> None:
    """Run the task DELAY_SECONDS after the surrounding transaction commits. A request within the delay of an earlier
    one is covered by that one, and costs nothing."""
    transaction.on_commit(partial(_publish, task))


def _publish(task: str) -> None:
    now = time.monotonic()
    if now - _requested_at.get(task, -DELAY_SECONDS) < DELAY_SECONDS:
        return
    _requested_at[task] = now
    if not cache.add(f"requested:{task}", 1, timeout=DELAY_SECONDS):  # by another process
        return
    try:
        current_app.send_task(task, countdown=DELAY_SECONDS, expires=10 * DELAY_SECONDS, retry=False)
    except BrokerError as error:
        logger.warning("task.not_requested", task=task, reason=failures.redact_secrets(str(error)))
