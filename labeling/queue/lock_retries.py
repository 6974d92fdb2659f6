"""How long one keeps trying for what others have locked. Nobody waits for a lock: two who wait can block each other."""

import random
import time
from collections.abc import Iterator

# Somebody else's claim lasts a few milliseconds, on a busy machine some more. In sum about two seconds.
_TRIES = 40
_FIRST_SECONDS, _LONGEST_SECONDS = 0.004, 0.06


def retry_attempts() -> Iterator[None]:
    """Once at once, then again after pauses that grow and differ, so that many who try do not meet each time."""
    yield
    for number in range(1, _TRIES):
        longest = min(_LONGEST_SECONDS, _FIRST_SECONDS * 2**number)
        time.sleep(longest * random.uniform(0.5, 1))  # noqa: S311  spreads the tries of many
        yield
