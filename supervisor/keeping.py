"""Looks after programs that were started, says what became of them, and stops them. It does not ask what they are."""

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Collection
from types import FrameType

from supervisor.child import Child

STOPPED_WITHIN = 10.0


class Told(BaseException):
    """Somebody asked us to stop."""


def say(text: str) -> None:
    with contextlib.suppress(OSError):  # whoever read what we say may have gone; the platform stays
        print(text, flush=True)


def keep(started: list[Child]) -> None:
    while True:
        look_after(started)
        time.sleep(0.25)


def look_after(started: list[Child]) -> None:
    for program in started:
        if happened := program.keep_alive():
            say(happened)


def stop(started: list[Child], *, last: Collection[str] = ()) -> None:
    """Stop the programs, those named last after the others. A second request to stop ends all of them at once."""
    is_urgent: list[bool] = []
    _on_end(lambda: is_urgent.append(True))
    for group in (
        [program for program in started if program.name not in last],
        [program for program in started if program.name in last],
    ):
        ends = time.monotonic() + STOPPED_WITHIN
        for program in group:
            program.ask_to_stop()
        for program in group:
            program.stop(until=0.0 if is_urgent else ends)


def listen_for_the_end() -> None:
    def tell() -> None:
        raise Told

    _on_end(tell)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr] # what a pipe reads must not wait


def _on_end(act: Callable[[], object]) -> None:
    def handle(_number: int, _frame: FrameType | None) -> None:
        act()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handle)
