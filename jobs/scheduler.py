"""The beat: send periodic tasks, but those that usually find nothing to do only if they have work.

A task that finds nothing costs the beat, the broker and the worker several milliseconds. Whether any of them has work
is one statement, which the beat runs every LOOK_SECONDS. It queries the database, so work is found after any crash.
Work that people wait for requests its task immediately (`jobs.wakeups`).
"""

from typing import Any

import structlog
from celery.beat import PersistentScheduler
from django.db import Error, connection
from django.utils import timezone
from kombu.exceptions import OperationalError as BrokerError

import rawsql

LOOK_SECONDS = 30.0
LOOK = "jobs.look_for_work"  # an entry of the schedule that is not a task: the beat itself does it

logger = structlog.get_logger(__name__)
_checks: dict[str, str] = {}


def register_work_check(task: str, condition: str) -> None:
    """Send this task if the SQL condition is true. `%(now)s` is the time. It may be true without work, but is never
    false with work."""
    _checks[task] = condition


class QuietScheduler(PersistentScheduler):  # type: ignore[misc]  # Celery has no types
    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        if entry.task != LOOK:
            super().apply_entry(entry, producer=producer)
            return
        for task in list_tasks_with_work():
            try:
                self.app.send_task(task, expires=LOOK_SECONDS, producer=producer, retry=False)
            except BrokerError as error:  # the next check asks again
                logger.warning("beat.not_sent", task=task, reason=type(error).__name__)
                return

    def adjust(self, n: Any, drift: float = 0.0) -> Any:
        """Wake when an entry is due. Celery wakes 10 ms before, and then asks again and again until it is due."""
        return n

    def schedules_equal(self, *_: Any) -> bool:
        """Report the schedule as unchanged; Celery would compare all of it at each tick."""
        return True


def list_tasks_with_work() -> list[str]:
    """Return the tasks that have work. All of them if the database does not answer: the tasks report why."""
    statement = "SELECT " + ", ".join(f"({condition})" for condition in _checks.values())
    try:
        (found,) = rawsql.fetch_rows(statement, {"now": timezone.now()})
    except Error as error:
        logger.warning("beat.not_checked", reason=str(error))
        connection.close_if_unusable_or_obsolete()
        return list(_checks)
    return [task for task, has_work in zip(_checks, found, strict=True) if has_work]
