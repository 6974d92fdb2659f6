"""How long the requests of raters take, for `/metrics`: histograms that all web processes of a machine share.

The memory is created before the web server forks. Each process counts in its own part, chosen by its number, so that
none waits for another: a lock would stay locked if its process were killed. Two processes with the same part may lose a
count.
"""

import mmap
import os
import threading
from collections.abc import Iterator
from typing import NamedTuple

REQUESTS = ("claim", "record", "submit")
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)  # seconds
_PARTS = 64
_CELLS = len(BOUNDS) + 2  # a count for each bound and for longer times, and the sum of all times

_lock = threading.Lock()
_cells = memoryview(mmap.mmap(-1, 8 * _PARTS * len(REQUESTS) * _CELLS)).cast("d")


class RequestTimes(NamedTuple):
    request: str
    counts: list[float]  # up to each bound, and longer
    seconds: float


def note_request(path: str, seconds: float) -> None:
    """Count a request of the work page, if it is one of REQUESTS."""
    name = path.rpartition("/")[2]
    if name not in REQUESTS:
        return
    start = _first_cell(os.getpid() % _PARTS, name)
    bound = sum(seconds > each for each in BOUNDS)
    with _lock:
        _cells[start + bound] += 1
        _cells[start + _CELLS - 1] += seconds


def read_times() -> Iterator[RequestTimes]:
    """Add up the parts of all processes since the web server started."""
    for name in REQUESTS:
        starts = [_first_cell(part, name) for part in range(_PARTS)]
        *counts, seconds = (sum(_cells[start + cell] for start in starts) for cell in range(_CELLS))
        yield RequestTimes(name, counts, seconds)


def _first_cell(part: int, name: str) -> int:
    return (part * len(REQUESTS) + REQUESTS.index(name)) * _CELLS
