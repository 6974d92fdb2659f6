"""How long a job steps aside between two chunks, so that people at work do not feel it. Decides, never writes.

SQLite has one write lock and hands it out unfairly: whoever asks again at once usually gets it. A job that pauses three
times as long as it held the lock leaves three quarters of the time to those who judge. Where it had to wait for them
itself, they are many, and it leaves them more. While nobody judges, a sixth is left to whoever begins.
"""

import datetime as dt
import threading
import time
from collections.abc import Callable

from django.db import connection

from jobs import writing_back

WATCHED = dt.timedelta(seconds=60)
TO_PEOPLE = 3
TO_MANY = 10  # times as long as the job had to wait
TO_NOBODY = 0.2
LONGEST_PAUSE = 2.0  # far below a lease, and still a fair share after the slowest chunk

WAIT = 0.005  # seconds that a transaction beside people may keep them waiting

Question = Callable[[dt.datetime], bool]
_questions: list[Question] = []
_answer: tuple[float, bool] = (0.0, False)
_last = threading.local()  # a worker does several jobs at once, each in a thread of its own
_KEPT_FOR = 0.5  # seconds: a chunk takes milliseconds, its answer need not be newer


def register(somebody_worked_since: Question) -> None:
    """For `AppConfig.ready` of a room where people work: says whether anybody has since a time."""
    if somebody_worked_since not in _questions:
        _questions.append(somebody_worked_since)


def pause(took: float, *, waited: float = 0.0, now: dt.datetime, sleep: Callable[[float], None] = time.sleep) -> float:
    """Step aside after a transaction that took so many seconds, and had to wait so long. Says for how long."""
    _last.took = took
    seconds = wanted(took, waited=waited, now=now)
    rest = seconds - writing_back.between_chunks()
    if rest > 0:
        sleep(rest)
    return seconds


def fitting(count: int, *, least: int, most: int) -> int:
    """How much to write at once beside people, told how much the last transaction wrote: as long as it takes on this
    machine, now, for people to wait no longer than WAIT. It changes by no more than half at a time."""
    took = getattr(_last, "took", WAIT)
    change = min(max(WAIT / max(took, 1e-6), 0.5), 1.5)
    return min(max(round(count * change), least), most)


def wanted(took: float, *, waited: float = 0.0, now: dt.datetime) -> float:
    """PostgreSQL lets others write meanwhile: there a job never steps aside."""
    if connection.vendor != "sqlite":
        return 0.0
    seconds = took * TO_PEOPLE + waited * TO_MANY if is_somebody_at_work(now) else took * TO_NOBODY
    return min(seconds, LONGEST_PAUSE)


def is_somebody_at_work(now: dt.datetime) -> bool:
    """Whether anybody has judged of late. Asked at most twice a second."""
    global _answer
    asked_at, answer = _answer
    if time.monotonic() - asked_at > _KEPT_FOR or not asked_at:
        answer = any(question(now - WATCHED) for question in _questions)
        _answer = (time.monotonic(), answer)
    return answer
