"""Pauses between attempts to get a row that others have locked. No one waits for a lock, so there are no deadlocks."""

import random
import time
from collections.abc import Iterator

# A claim holds its lock for a few milliseconds, longer on a busy machine. The attempts take about two seconds in total.
_ATTEMPTS = 40
_FIRST_SECONDS, _LONGEST_SECONDS = 0.004, 0.06


def retry_attempts() -> Iterator[None]:
    """Yield immediately, then after growing random pauses, so that concurrent callers do not collide each time."""
    yield
    for number in range(1, _ATTEMPTS):
        longest = min(_LONGEST_SECONDS, _FIRST_SECONDS * 2**number)
        time.sleep(longest * random.uniform(0.5, 1))  # noqa: S311  spreads concurrent attempts
        yield
